#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedule/schedule.hpp"

namespace tutti::schedule {

/// The schedule as a table: a row for each round, a column for each rank (or for the one asked for). In a
/// cell ">1[0]" is a send of block 0 to rank 1,
/// "<1[0]" a receive that overwrites, "+1[0]" one that adds, "~1[0]" one into a slot, "=[0]" the sum of all
/// slots.
std::string explain(const Schedule& schedule, std::optional<Rank> only = {});

/// Rounds, messages and blocks of the busiest rank, and what check() proves.
std::string summary_of(const Schedule& schedule);

/// A drawing: ranks as columns, rounds as rows, messages as arrows coloured by what the receiver does.
/// SVG 1.1, self-contained.
std::string draw_svg(const Schedule& schedule, std::string_view title);

}  // namespace tutti::schedule
