#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/request.hpp"
#include "schedule/schedule.hpp"

namespace tutti::engine {

/// Half-open range of elements.
struct Range {
  std::size_t offset = 0;
  std::size_t count = 0;
};

/// Where the blocks of a schedule lie in the buffers of a call, segment by segment.
///
/// allreduce, broadcast, reduce: a segment is a part of the buffer, cut into equal blocks. reduce_scatter,
/// allgather(v): block r is rank r's, and a segment is a part of every block.
class Geometry {
 public:
  Geometry(const Request& request, Rank ranks, Rank rank, std::uint32_t blocks, std::uint64_t segment_bytes);

  std::uint64_t segments() const { return segments_; }

  std::uint32_t blocks() const { return blocks_; }

  bool whole_blocks() const { return by_rank_; }

  /// A run of blocks is contiguous in memory (in every segment).
  bool runs_are_contiguous() const { return !by_rank_ || segments_ == 1; }

  /// Elements in the input, the output, and in a buffer that holds just this segment. A run of blocks must be
  /// contiguous.
  Range in_input(std::uint64_t segment, schedule::Block blocks) const;
  Range in_output(std::uint64_t segment, schedule::Block blocks) const;
  Range in_segment(std::uint64_t segment, schedule::Block blocks) const;

  /// Upper bound, over all segments, of the elements of a run of blocks, and of a whole segment.
  std::size_t most_elements(schedule::Block blocks) const;

  std::size_t segment_elements() const { return most_elements({0, blocks_}); }

 private:
  Range in_block_space(std::uint64_t segment, schedule::Block blocks) const;
  std::size_t even_block(std::size_t elements) const;
  std::size_t block_part(std::uint64_t segment, std::uint32_t block) const;

  schedule::Collective collective_;
  Rank rank_;
  std::uint32_t blocks_;
  std::uint64_t segments_ = 1;
  bool by_rank_;
  std::size_t count_;
  std::size_t segment_ = 0;          ///< elements of a segment, or of a block's part of it
  std::vector<std::size_t> starts_;  ///< by_rank_: first element of each block, and the end
};

}  // namespace tutti::engine
