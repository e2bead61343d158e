#pragma once

#include <string_view>
#include <utility>

#include "schedule/schedule.hpp"

namespace tutti::tools {

inline constexpr const char* link_help =
    "RATE[,DELAY][,jitter=TIME][,burst=BYTES], such as 100mbit,1ms: every rank is a host of its own behind "
    "such a link";

/// "8" or "1..128". Throws InvalidArgument naming `option`.
std::pair<Rank, Rank> parse_range(std::string_view text, std::string_view option);
/// A collective by its name. Throws InvalidArgument that lists all.
schedule::Collective parse_collective(std::string_view name);

}  // namespace tutti::tools
