#pragma once

#include <string>

#include "engine/request.hpp"

namespace tutti::engine {

/// What is wrong if a buffer is null where elements are, or if input and output overlap without being in
/// place as the collective defines it; empty if nothing is.
std::string buffer_problem(const Request& request, Rank rank, Rank ranks);

}  // namespace tutti::engine
