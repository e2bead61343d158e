#pragma once

#include <string>

namespace tutti::base {

/// This machine's name, as gethostname gives it.
std::string host_name();
int process_id();

}  // namespace tutti::base
