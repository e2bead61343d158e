#include "engine/predict.hpp"

#include <algorithm>

#include "engine/profile.hpp"

namespace tutti::engine {

using schedule::Collective;

namespace {

/// How often each byte of the message is copied and added by a rank.
struct Passes {
  double copies = 0;
  double additions = 0;
};

Passes passes_of(Collective collective, double ranks, bool in_arena) {
  const double staging = in_arena ? 0 : 1;
  switch (collective) {
    case Collective::allreduce: return {1 + staging, 1};
    case Collective::reduce_scatter: return {staging, 1};
    case Collective::reduce: return {staging, 1 / ranks};
    case Collective::allgather: return {1 + staging / ranks, 0};
    case Collective::broadcast: break;
  }
  return {1 + staging / ranks, 0};
}

}  // namespace

double node_seconds(const Request& request, Rank ranks, unsigned processors, bool in_arena,
                    const node::Limits& limits, const schedule::Link& memory) {
  const auto p = static_cast<double>(ranks);
  const auto bytes = static_cast<double>(message_bytes(request, ranks));
  const double load = std::max(1.0, p / processors);
  if (bytes <= static_cast<double>(limits.slot_bytes))
    return load * (memory.latency_s + p * bytes * memory.reduce_seconds_per_byte);
  const Passes passes = passes_of(request.collective, p, in_arena);
  return load * (2 * memory.latency_s + bytes * (passes.copies * memory.seconds_per_byte +
                                                 passes.additions * memory.reduce_seconds_per_byte));
}

}  // namespace tutti::engine
