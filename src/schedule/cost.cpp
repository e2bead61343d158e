#include "schedule/cost.hpp"

#include <algorithm>

namespace tutti::schedule {
namespace {

/// A further message of a round costs this part of a latency: the processor's share, not the wire's.
constexpr double further_message = 0.3;

double round_seconds(std::span<const Step> steps, double block_bytes, Rank ranks, const Link& link) {
  double sent = 0;
  double received = 0;
  double reduced = 0;
  int sends = 0;
  int receives = 0;
  for (const Step& step : steps) {
    const double bytes = block_bytes * step.blocks.size();
    if (step.kind == Kind::send) {
      sent += bytes;
      ++sends;
    } else if (step.kind == Kind::reduce_slots) {
      reduced += bytes * (ranks - 1);
    } else {
      received += bytes;
      ++receives;
      if (step.kind == Kind::recv_reduce) reduced += bytes;
    }
  }
  const int messages = std::max(sends, receives);
  if (messages == 0) return reduced * link.reduce_seconds_per_byte;
  return link.latency_s * (1 + further_message * (messages - 1)) +
         std::max(sent, received) * link.seconds_per_byte + reduced * link.reduce_seconds_per_byte;
}

}  // namespace

double predict(const Schedule& schedule, Rank rank, std::uint64_t bytes, const Link& link) {
  Sink sink;
  const double block_bytes = static_cast<double>(bytes) / schedule.blocks();
  double slowest = 0;
  for (std::uint32_t strand = 0; strand < schedule.strands(); ++strand) {
    double seconds = 0;
    for (std::uint32_t round = 0; round < schedule.rounds(rank, strand); ++round) {
      schedule.emit(rank, strand, round, sink);
      seconds += round_seconds(sink.steps(), block_bytes, schedule.ranks(), link);
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

}  // namespace tutti::schedule
