#pragma once

#include <string>

namespace tutti::base {

/// This machine's name, as gethostname gives it.
std::string host_name();
int process_id();
/// Processors of this machine, whatever this process may use of them.
int installed_processors();

}  // namespace tutti::base
