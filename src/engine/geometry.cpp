#include "engine/geometry.hpp"

#include <algorithm>

namespace tutti::engine {
namespace {

using schedule::Block;
using schedule::Collective;

constexpr std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

}  // namespace

Geometry::Geometry(const Request& request, Rank ranks, Rank rank, std::uint32_t blocks,
                   std::uint64_t segment_bytes)
    : collective_(request.collective),
      rank_(rank),
      blocks_(blocks),
      by_rank_(request.collective == Collective::reduce_scatter ||
               request.collective == Collective::allgather),
      count_(request.count) {
  const std::size_t wanted = std::max<std::size_t>(1, segment_bytes / request.element_bytes());
  if (!by_rank_) {
    segment_ = std::min(std::max<std::size_t>(count_, 1), wanted);
    segments_ =
        std::max<std::size_t>(1, ceil_div(count_, segment_));  // one of nothing still compares the calls
    return;
  }
  starts_.push_back(0);
  std::size_t longest = 0;
  for (Rank r = 0; r < ranks; ++r) {
    const std::size_t length = request.counts.empty() ? count_ : request.counts[static_cast<std::size_t>(r)];
    starts_.push_back(starts_.back() + length);
    longest = std::max(longest, length);
  }
  // A message is one block's part here: the segment size bounds messages, not the sum over blocks, or many
  // ranks would mean tiny ones.
  segment_ = std::min(std::max<std::size_t>(longest, 1), wanted);
  segments_ = std::max<std::size_t>(1, ceil_div(longest, segment_));
}

/// Blocks of equal size, in steps of 16 elements once they are large, so that no vector straddles two of
/// them.
std::size_t Geometry::even_block(std::size_t elements) const {
  const std::size_t size = ceil_div(elements, blocks_);
  return size >= 1024 ? ceil_div(size, 16) * 16 : size;
}

std::size_t Geometry::block_part(std::uint64_t segment, std::uint32_t block) const {
  const std::size_t length = starts_[block + 1] - starts_[block];
  const std::size_t from = std::min(length, segment * segment_);
  return std::min(length, from + segment_) - from;
}

/// Offsets within the concatenation of all blocks, as the input of reduce_scatter and the output of allgather
/// have it.
Range Geometry::in_block_space(std::uint64_t segment, Block blocks) const {
  const std::size_t length = starts_[blocks.first + 1] - starts_[blocks.first];
  std::size_t elements = 0;
  for (std::uint32_t block = blocks.first; block < blocks.last; ++block)
    elements += block_part(segment, block);
  return {starts_[blocks.first] + std::min(length, segment * segment_), elements};
}

Range Geometry::in_segment(std::uint64_t segment, Block blocks) const {
  if (!by_rank_) {
    const std::size_t elements = std::min(segment_, count_ - segment * segment_);
    const std::size_t size = even_block(elements);
    const std::size_t from = std::min(elements, blocks.first * size);
    return {from, std::min(elements, blocks.last * size) - from};
  }
  Range range;
  for (std::uint32_t block = 0; block < blocks.last; ++block) {
    (block < blocks.first ? range.offset : range.count) += block_part(segment, block);
  }
  return range;
}

Range Geometry::in_input(std::uint64_t segment, Block blocks) const {
  if (!by_rank_) {
    const Range range = in_segment(segment, blocks);
    return {segment * segment_ + range.offset, range.count};
  }
  Range range = in_block_space(segment, blocks);
  if (collective_ == Collective::allgather) range.offset -= starts_[static_cast<std::size_t>(rank_)];
  return range;
}

Range Geometry::in_output(std::uint64_t segment, Block blocks) const {
  if (!by_rank_) return in_input(segment, blocks);
  Range range = in_block_space(segment, blocks);
  if (collective_ == Collective::reduce_scatter) range.offset -= starts_[static_cast<std::size_t>(rank_)];
  return range;
}

std::size_t Geometry::most_elements(Block blocks) const {
  if (!by_rank_) return std::min(segment_, even_block(segment_) * blocks.size());
  std::size_t elements = 0;
  for (std::uint32_t block = blocks.first; block < blocks.last; ++block) elements += block_part(0, block);
  return elements;
}

}  // namespace tutti::engine
