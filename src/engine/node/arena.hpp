#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/shared_memory.hpp"

namespace tutti::engine::node {

/// Where a buffer lies in the arena: the same word means the corresponding place in every rank's part. 0:
/// nowhere.
using Word = std::uint64_t;

/// The shared buffers of a node, each allocated by all its ranks together. A mapping stays until all ranks
/// have given the buffer back, as they may still read it.
class Arena {
 public:
  Arena(Rank rank, Rank ranks) : rank_(rank), ranks_(static_cast<std::size_t>(ranks)) {}

  /// Adds memory of equal parts, of which the first page is for the arena's own use.
  std::byte* add(std::shared_ptr<transport::SharedMemory> memory);
  /// This rank needs the buffer no more.
  void give_back(const std::byte* buffer);

  /// Unmaps what all ranks have given back.
  void sweep();

  /// Of `bytes` bytes of this rank; 0 if they do not lie in one buffer of the arena.
  Word word_of(const void* data, std::size_t bytes) const;
  /// What rank `rank` has at that word.
  std::byte* at(Word word, Rank rank) const;

  static constexpr std::size_t header_bytes = 4096;

 private:
  struct Entry {
    std::uint64_t number = 0;
    std::shared_ptr<transport::SharedMemory> memory;
    std::size_t part = 0;  ///< bytes of one rank
  };

  const Entry* find(std::uint64_t number) const;
  bool given_back_by_all(const Entry& entry) const;
  void sweep_locked();

  const Rank rank_;
  const std::size_t ranks_;
  mutable std::mutex mutex_;  ///< buffers may go on another thread than the one that communicates
  std::vector<Entry> entries_;
  std::uint64_t next_ = 1;
};

}  // namespace tutti::engine::node
