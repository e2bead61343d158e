#pragma once

#include <array>
#include <cstdint>

#include "base/clock.hpp"

namespace tutti::base {

/// How long a wait stays on each rung before it goes to the next.
struct WaitLimits {
  std::uint32_t spins = 0;   ///< turns with a processor pause
  std::uint32_t yields = 0;  ///< turns that give the processor to another thread
  Seconds first_nap{20e-6};  ///< then sleeps, doubling
  Seconds longest_nap{1e-3};

  /// Limits for so many ranks of one node on so many processors that they may use: with a core for each, spin
  /// a little; otherwise yield at once, because whoever is waited for needs the processor.
  static WaitLimits for_load(unsigned ranks_here, unsigned processors);
};

/// Tells the processor that this is a loop that waits.
void pause_processor();

/// A bit for each processor that this process may run on (its affinity mask), up to 1024.
using ProcessorMask = std::array<std::uint64_t, 16>;
ProcessorMask usable_mask();
/// At least 1.
unsigned count_of(const ProcessorMask& mask);
/// Processors that this process may run on. Launchers often give each process one of its own: what a node's
/// ranks may use together is what their masks are together.
unsigned usable_processors();

/// The ladder that every wait climbs: spin, yield, sleep. One object per wait; reset() when something
/// happened.
class Ladder {
 public:
  explicit Ladder(const WaitLimits& limits) : limits_(limits) {}

  /// One turn of waiting. True if it was beyond the first rung: then look around (deadline, peers).
  bool turn();

  void reset() {
    turns_ = 0;
    nap_ = Seconds(0);
  }

  /// The next turn would sleep: a waiter that can be woken may prefer to block on its own.
  bool about_to_sleep() const { return turns_ >= limits_.spins + limits_.yields; }

  /// How long that sleep would be.
  Seconds next_nap() const { return nap_ == Seconds(0) ? limits_.first_nap : nap_; }

 private:
  WaitLimits limits_;
  std::uint32_t turns_ = 0;
  Seconds nap_{0};
};

}  // namespace tutti::base
