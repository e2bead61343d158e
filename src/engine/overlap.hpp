#pragma once

#include <string>

#include "engine/request.hpp"

namespace tutti::engine {

/// Throws InvalidArgument if a buffer is null where elements are, or if input and output overlap without
/// being in place as the collective defines it. `where` starts the message.
void check_buffers(const Request& request, Rank rank, Rank ranks, const std::string& where);

}  // namespace tutti::engine
