#include "gradient/parts.hpp"

#include <utility>

namespace tutti::gradient {
namespace {

std::size_t elements_of(std::span<const exchange::Run> runs) {
  std::size_t count = 0;
  for (const exchange::Run& run : runs) count += run.count;
  return count;
}

}  // namespace

std::vector<CodedPart> parts_of(std::span<const exchange::Run> bucket, const compress::Codec& codec,
                                Rank ranks) {
  std::vector<CodedPart> parts;
  if (codec.algebra() != compress::Algebra::reencodable) {
    for (const exchange::Run& run : bucket) {
      if (parts.empty() || elements_of(parts.back().runs) + run.count > coded_part_elements)
        parts.emplace_back();
      parts.back().runs.push_back(run);
    }
    return parts;
  }
  const auto count = static_cast<Rank>(elements_of(bucket) / coded_part_elements + 1);
  for (auto& runs : exchange::slices_of(bucket, count, codec.block())) {
    if (runs.empty()) continue;
    auto slices = exchange::slices_of(runs, ranks, codec.block());
    parts.push_back({std::move(runs), std::move(slices)});
  }
  return parts;
}

}  // namespace tutti::gradient
