#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "schedule/schedule.hpp"
#include "tutti/communicator.hpp"

namespace tutti::bench {

struct PlanOptions {
  schedule::Collective collective = schedule::Collective::allreduce;
  std::uint64_t bytes = 1 << 20;  ///< of the message
  DType type = DType::f32;
  Op op = Op::sum;
  Rank root = 0;
  std::string algorithm = {};        ///< empty: chosen
  std::optional<Order> order = {};   ///< empty: the session's
  double wire_bytes_per_second = 0;  ///< of a node's link; 0: what the session knows
};

/// Collective. What this call would do here, and how well: the way and why, segments and messages, the
/// predicted time beside the measured one, the other ways with their predictions, the physical bound and the
/// gap. The bound within a node is what bench::Bound measures; between nodes what wire_rate says. The same
/// text on every rank.
std::string explain_plan(Communicator& world, const base::Clock& clock, const PlanOptions& options);

}  // namespace tutti::bench
