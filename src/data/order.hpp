#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tutti/types.hpp"

namespace tutti::data {

/// 0 .. count-1 in an order that follows from seed and stream (Fisher-Yates); the same on every machine.
std::vector<std::uint32_t> permutation(std::size_t count, std::uint64_t seed, std::uint64_t stream);

/// Which samples a step uses: every epoch visits each sample once, in an order that follows from (seed,
/// epoch), whatever the rank count. Global batch i of an epoch is a slice of that order (the last may be
/// shorter), and rank r of p takes the part [B r / p, B (r+1) / p) of it.
class SampleOrder {
 public:
  /// Throws InvalidArgument if there are no samples or the batch is 0.
  SampleOrder(std::size_t samples, std::size_t batch, std::uint64_t seed);

  std::size_t steps_per_epoch() const { return (samples_ + batch_ - 1) / batch_; }

  /// `step` counts from 0 over the whole run. All samples of the step, valid until the epoch changes.
  std::span<const std::uint32_t> global_batch(std::size_t step);
  std::span<const std::uint32_t> local_batch(std::size_t step, Rank rank, Rank ranks);

 private:
  std::size_t samples_;
  std::size_t batch_;
  std::uint64_t seed_;
  std::size_t epoch_ = ~std::size_t{0};
  std::vector<std::uint32_t> order_;
};

/// Part `rank` of `ranks` of `count` things: [first, last).
struct Part {
  std::size_t first = 0;
  std::size_t last = 0;
};

Part part_of(std::size_t count, Rank rank, Rank ranks);

}  // namespace tutti::data
