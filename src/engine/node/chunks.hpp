#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/request.hpp"

namespace tutti::engine::node {

/// How a collective is carried out through cells: each rank puts a chunk of what it contributes into its
/// cell; then each adds up what it needs from all cells, all of it or, if that would be too much work done by
/// everyone, a slice that the others take from its cell afterwards.
class Chunks {
 public:
  /// `sliced`: each rank adds a slice (allreduce, reduce), instead of every rank everything.
  /// `streams`: results are written past the caches.
  Chunks(const Request& request, Rank rank, Rank ranks, std::size_t cell_bytes, bool sliced, bool streams);

  std::uint64_t count() const { return chunks_; }

  /// Whether there is a third step after stage() and reduce().
  bool gathers() const { return gathers_; }

  /// Whether reduce() does anything.
  bool reduces() const { return reduces_; }

  /// Bytes that a rank has in its cell for all of the operation.
  std::size_t total_bytes() const { return total_bytes_; }

  void stage(std::uint64_t chunk, std::byte* own_cell) const;
  void reduce(std::uint64_t chunk, std::span<std::byte* const> cells, std::span<const void*> scratch) const;
  /// reduce() for the shortest messages: whole vectors, from cells that may be read beyond their contents.
  /// False if this is none.
  bool reduce_padded(std::span<std::byte* const> cells, std::span<const void*> scratch) const;
  void gather(std::uint64_t chunk, std::span<std::byte* const> cells) const;

 private:
  struct Part {
    std::size_t first = 0;
    std::size_t count = 0;
  };

  Part part(std::uint64_t chunk, std::size_t elements) const;
  Part slice(std::size_t elements, Rank rank) const;
  void put(std::byte* cell, std::size_t first, std::size_t count) const;
  void reduce_run(std::byte* to, std::span<std::byte* const> cells, std::size_t cell_offset, const void* own,
                  std::size_t count, std::span<const void*> scratch) const;
  void install(std::byte* to, const std::byte* from, std::size_t bytes) const;
  std::size_t block_start(Rank rank) const;
  std::size_t block_count(Rank rank) const;

  const Request& request_;
  Rank rank_;
  Rank ranks_;
  DType wire_;
  bool scaled_;
  bool streams_;
  bool sliced_ = false;
  bool gathers_ = false;
  bool reduces_ = false;
  std::size_t chunk_ = 0;  ///< elements of a chunk, or of a block's part of it
  std::uint64_t chunks_ = 0;
  std::size_t total_bytes_ = 0;
};

}  // namespace tutti::engine::node
