#include <algorithm>

#include "exchange/coded.hpp"

namespace tutti::exchange {

namespace {

/// The end of slice `r` of `ranks`, in elements of the bucket: the first border of a block, or of a
/// parameter, that is not before an equal part.
std::size_t border(std::span<const Run> whole, std::size_t size, Rank r, Rank ranks, std::size_t block) {
  const std::size_t wanted =
      whole.front().at + size * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks);
  for (const Run& run : whole) {
    if (wanted > run.at + run.count) continue;
    const std::size_t inside = wanted <= run.at ? 0 : wanted - run.at;
    return run.at + std::min<std::size_t>((inside + block - 1) / block * block, run.count);
  }
  return whole.front().at + size;
}

}  // namespace

std::vector<std::vector<Run>> slices_of(std::span<const Run> whole, Rank ranks, std::size_t block) {
  std::vector<std::vector<Run>> slices(static_cast<std::size_t>(ranks));
  if (whole.empty()) return slices;
  const std::size_t begin = whole.front().at;
  const std::size_t size = whole.back().at + whole.back().count - begin;
  for (Rank r = 0; r < ranks; ++r) {
    const std::size_t first = r == 0 ? begin : border(whole, size, r, ranks, block);
    const std::size_t last = r + 1 == ranks ? begin + size : border(whole, size, r + 1, ranks, block);
    for (const Run& run : whole) {
      const std::size_t from = std::max(first, run.at);
      const std::size_t to = std::min<std::size_t>(last, run.at + run.count);
      if (from >= to) continue;
      slices[static_cast<std::size_t>(r)].push_back({.parameter = run.parameter,
                                                     .offset = run.offset + (from - run.at),
                                                     .count = to - from,
                                                     .size = run.size,
                                                     .at = from,
                                                     .rows = run.rows});
    }
  }
  return slices;
}

}  // namespace tutti::exchange
