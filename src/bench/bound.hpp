#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "tutti/communicator.hpp"

namespace tutti::bench {

/// What the memory of a node allows an allreduce of S bytes on each of its p ranks: no less than (1) all
/// ranks copying S bytes of their own at the same time, as every input is read and every output written; and
/// (2) each rank reading, and then overwriting, (p-1)/p S bytes of lines that its peers have just written.
/// The larger of both, each the median over samples of the slowest rank.
class Bound {
 public:
  /// Collective. `most`: the longest message.
  Bound(Communicator& world, const base::Clock& clock, std::uint64_t most);
  /// Collective.
  double seconds(std::uint64_t bytes, std::size_t iterations);
  /// Collective: a barrier, which is an exchange of flags.
  double flags(std::size_t iterations);

 private:
  double copy_once(std::uint64_t bytes);
  double exchange_once(std::uint64_t bytes);
  double slowest_median(std::vector<double> samples);
  std::uint8_t* of_peer(Rank peer) const;

  Communicator& world_;
  const base::Clock& clock_;
  std::uint64_t most_;
  std::vector<std::uint8_t> source_;
  std::vector<std::uint8_t> target_;
  Buffer<std::uint8_t> shared_;
};

/// What a node's link takes for a byte each way.
struct WireRate {
  double seconds_per_byte = 0;  ///< 0: not known
  std::string source;
};

/// As given in bytes per second, or (0) as the session knows it: from its profile, as that of the links that
/// it puts ranks behind, or as measured when it started. The bound of a collective
/// on ranks of several nodes is bus_factor(collective, nodes) of the message at this rate. The same on every
/// rank.
WireRate wire_rate(Communicator& world, double bytes_per_second);

}  // namespace tutti::bench
