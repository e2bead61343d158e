#include "data/order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace tutti::data {

std::vector<std::uint32_t> permutation(std::size_t count, std::uint64_t seed, std::uint64_t stream) {
  base::require(count <= ~std::uint32_t{0}, "{} samples; at most {} are supported", count, ~std::uint32_t{0});
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  base::Random random(seed, stream);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

SampleOrder::SampleOrder(std::size_t samples, std::size_t batch, std::uint64_t seed)
    : samples_(samples), batch_(batch), seed_(seed) {
  base::require(samples > 0, "the training set has 0 samples");
  base::require(batch > 0, "the global batch is 0 samples; it must be at least 1");
}

std::span<const std::uint32_t> SampleOrder::global_batch(std::size_t step) {
  const std::size_t epoch = step / steps_per_epoch();
  if (epoch != epoch_) {
    // Stream 0 is the split of the data set.
    order_ = permutation(samples_, seed_, epoch + 1);
    epoch_ = epoch;
  }
  const std::size_t first = step % steps_per_epoch() * batch_;
  return std::span(order_).subspan(first, std::min(batch_, samples_ - first));
}

std::span<const std::uint32_t> SampleOrder::local_batch(std::size_t step, Rank rank, Rank ranks) {
  const auto all = global_batch(step);
  const Part part = part_of(all.size(), rank, ranks);
  return all.subspan(part.first, part.last - part.first);
}

Part part_of(std::size_t count, Rank rank, Rank ranks) {
  const auto r = static_cast<std::size_t>(rank);
  const auto p = static_cast<std::size_t>(ranks);
  return {count * r / p, count * (r + 1) / p};
}

}  // namespace tutti::data
