#pragma once

#include <cstdint>
#include <memory>

#include "transport/transport.hpp"

namespace tutti::transport {

/// What a faulty transport does to the one below it. Seeded: the same faults at every run.
struct FaultPlan {
  std::uint64_t fail_at = 0;      ///< the n-th post or test (1-based) throws PeerLostError; 0: none does
  std::uint32_t delay_turns = 0;  ///< up to so many tests of a finished message say "not yet"
  std::uint64_t seed = 1;
};

/// A decorator for tests: delays and failures at every point where a real network has them.
/// `calls`, if given, counts posts and tests, so that a test can loop fail_at over all of them.
std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> below, FaultPlan plan,
                                       std::uint64_t* calls = nullptr);

}  // namespace tutti::transport
