#pragma once

#include <cstdint>

#include "schedule/schedule.hpp"

namespace tutti::schedule {

/// What a message and an addition cost: the alpha-beta-gamma model.
struct Link {
  double latency_s = 0;
  double seconds_per_byte = 0;
  double reduce_seconds_per_byte = 0;
};

/// Predicted seconds of one rank's program for a buffer of `bytes`: for each strand the sum over its rounds
/// of latency (once, and once more for each further message after the first), the larger of what is sent and
/// received, and what is reduced; the slowest strand counts. Looks at this rank's program only: cheap at any
/// rank count.
double predict(const Schedule& schedule, Rank rank, std::uint64_t bytes, const Link& link);

}  // namespace tutti::schedule
