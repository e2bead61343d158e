#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/transport.hpp"

/// What the ranks of a node tell each other in shared memory. Every field has one writer, the rank whose part
/// it lies in; numbers only grow, so that nothing is ever reset.
namespace tutti::engine::node {

/// Payloads up to this size go beside the flag.
inline constexpr std::size_t slot_payload = 8192 - 16;

/// A rank's arrival at an operation. Two of them in turn: whoever arrives at operation n + 2 has seen all
/// arrive at n + 1, so all have read what was in the slot for n.
struct alignas(128) Slot {
  std::atomic<std::uint64_t> operation;  ///< its number plus one: written last, read first
  std::uint64_t signature;
  /// Either a contribution, or two words: where input and output lie in the arena (0: nowhere).
  std::array<std::byte, slot_payload> payload;
};

/// A counter on a line of its own: two lines, as some processors fetch them in pairs.
struct alignas(128) Beat {
  std::atomic<std::uint64_t> value;
};

/// What a rank has called, for reports; words one by one, since it may be read while it is written.
struct Call {
  std::atomic<std::uint64_t> operation;  ///< its number plus one
  std::array<std::atomic<std::uint64_t>, 6> signature;
};

/// What only waiting and failing ranks look at.
struct alignas(128) Plight {
  std::atomic<std::uint32_t> sleepers;  ///< ranks that sleep until this one does something
  std::atomic<std::uint32_t> wakes;     ///< what they sleep on
  std::atomic<std::uint32_t> failure;   ///< 1 + Notice::Kind once the rank has given up
  std::atomic<std::uint32_t> closed;    ///< the rank has let its communicator go
  std::array<char, 2000> text;          ///< why
  std::atomic<std::uint64_t> entered;   ///< operations begun
  std::atomic<std::uint64_t> left;      ///< operations ended
  std::atomic<std::uint64_t> called;    ///< calls of any kind, also those that go by messages
  std::array<Call, 16> calls;           ///< the newest ones, number n of the communicator at n % 16
};

struct Control {
  std::array<Slot, 2> slots;
  Beat staged;    ///< chunks that lie in this rank's cells
  Beat reduced;   ///< chunks whose slice this rank has added up
  Beat consumed;  ///< chunks of which this rank needs no more from anybody's cells
  Beat done;      ///< operations in place that this rank has finished with others' buffers
  Plight plight;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace tutti::engine::node
