#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/node/arena.hpp"
#include "engine/node/control.hpp"
#include "engine/signature.hpp"
#include "transport/shared_memory.hpp"

namespace tutti::engine::node {

/// What the ranks of a communicator on one node share, and this rank's view of it.
class Group {
 public:
  /// Collective. Throws SystemError, the same on every rank, if memory cannot be shared.
  Group(transport::MemorySharer& sharer, const transport::NodePlace& place, std::size_t cell_bytes,
        std::vector<std::string> names);

  Rank rank() const { return rank_; }

  Rank ranks() const { return ranks_; }

  std::size_t cell_bytes() const { return cell_bytes_; }

  Control& own() { return *controls_[static_cast<std::size_t>(rank_)]; }

  Control& of(Rank rank) const { return *controls_[static_cast<std::size_t>(rank)]; }

  /// Where the ranks have their contributions of a chunk.
  std::span<std::byte* const> cells(std::uint64_t chunk) const {
    return std::span(cells_).subspan(chunk % cells_per_rank * static_cast<std::size_t>(ranks_),
                                     static_cast<std::size_t>(ranks_));
  }

  /// The same for contributions beside the flags of an operation.
  std::span<std::byte* const> slots(std::uint64_t operation) const {
    return std::span(slots_).subspan(operation % 2 * static_cast<std::size_t>(ranks_),
                                     static_cast<std::size_t>(ranks_));
  }

  std::span<const void*> scratch() { return scratch_; }

  Arena& arena() { return arena_; }

  /// "rank 3 (host, pid)".
  const std::string& name(Rank rank) const { return names_[static_cast<std::size_t>(rank)]; }

  /// Tells whoever sleeps because of this rank that it has done something.
  void wake();

  /// Sleeps until `rank` does something, `most` passes, or `ready()` was true all along.
  template <class Ready>
  void sleep_for(Rank rank, Seconds most, const Ready& ready) {
    Plight& plight = of(rank).plight;
    const std::uint32_t seen = plight.wakes.load(std::memory_order_acquire);
    plight.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!ready()) wait_on(plight.wakes, seen, most);
    plight.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }

  /// What each rank is in, a line for each.
  std::string table();

  /// Writes down what this rank calls, for the others to compare.
  void note_call(std::uint32_t sequence, const transport::Signature& signature);
  /// What a rank called as number `sequence`, if it has, and not long ago.
  std::optional<transport::Signature> call_of(Rank rank, std::uint32_t sequence) const;
  /// Tells all ranks that this one has given up; the first reason counts.
  void say_failed(transport::Notice::Kind kind, const std::string& text) noexcept;
  /// Why a call cannot end: a rank, this one too, has given up, or has called something else.
  std::optional<transport::Notice> trouble(std::uint32_t sequence,
                                           const transport::Signature& signature) const;
  /// A rank that will never come to the operation with this mark, in words: its process has ended, or it has
  /// let its communicator go.
  std::optional<std::string> missing(std::uint64_t mark) const;
  /// This rank takes no further part.
  void close();

  /// Operations run one after another: numbers given, and the one whose turn it is.
  std::uint64_t next = 0;
  std::uint64_t current = 0;
  /// Chunks that have gone through the cells so far; the same on every rank.
  std::uint64_t chunks = 0;
  /// How far each rank is known to be: counters of Control as they were last read.
  std::vector<std::uint64_t> staged;
  std::vector<std::uint64_t> reduced;
  std::vector<std::uint64_t> consumed;
  std::vector<std::uint64_t> done;

  static constexpr std::size_t cells_per_rank = 4;

 private:
  static void wait_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Seconds most);

  Rank rank_;
  Rank ranks_;
  std::size_t cell_bytes_;
  std::shared_ptr<transport::SharedMemory> memory_;
  std::vector<Control*> controls_;
  std::vector<std::byte*> cells_;
  std::vector<std::byte*> slots_;
  std::vector<const void*> scratch_;
  Arena arena_;
  std::vector<std::string> names_;
  transport::PeerWatch watch_;
};

/// The exception that tells of this kind of trouble.
[[noreturn]] void throw_as(transport::Notice::Kind kind, const std::string& text);

}  // namespace tutti::engine::node
