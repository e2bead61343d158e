#pragma once

#include <cstdint>

#include "cuda/kernels/cta.hpp"

/// What the lanes of a warp find out together about values of which lane l has numbers 128 k + 4 l + j.
namespace tutti::cuda {

/// Elements that a warp takes at a time, four by each lane.
inline constexpr unsigned warp_elements = 4 * warp_lanes;

template <class Cta>
TUTTI_DEVICE std::uint32_t warp_max(Cta& cta, std::uint32_t value) {
  for (unsigned mask = warp_lanes / 2; mask > 0; mask /= 2) {
    const std::uint32_t other = cta.shuffle_xor(value, mask);
    value = value < other ? other : value;
  }
  return value;
}

template <class Cta>
TUTTI_DEVICE std::uint32_t warp_sum(Cta& cta, std::uint32_t value) {
  for (unsigned mask = warp_lanes / 2; mask > 0; mask /= 2) value += cta.shuffle_xor(value, mask);
  return value;
}

/// compress::OrderedSum by a warp. Values i ≡ r (mod 32) are those of lanes m, m + 8, m + 16, m + 24 with
/// r = 4 m + j. Lane m + 8 q adds those of r = 4 m + q, in order.
class WarpOrderedSum {
 public:
  /// The next 128; all lanes.
  template <class Cta>
  TUTTI_DEVICE void add(Cta& cta, const Four& four) {
    const unsigned q = cta.lane() / 8;
    const auto mine = [&](unsigned which) { return pick(four.v[0], four.v[1], four.v[2], four.v[3], which); };
    // From lane m + 8 (q ^ t).
    const float a = mine(q);
    const float b = cta.shuffle_xor(mine(q ^ 1U), 8);
    const float c = cta.shuffle_xor(mine(q ^ 2U), 16);
    const float d = cta.shuffle_xor(mine(q ^ 3U), 24);
    for (unsigned s = 0; s < 4; ++s) sum_ += pick(a, b, c, d, s ^ q);
  }

  /// By halves: r + 16 is m + 4, r + 8 is m + 2, r + 4 is m + 1, r + 2 is q + 2, r + 1 is q + 1. The same on
  /// all lanes, as a + b and b + a have the same bits.
  template <class Cta>
  TUTTI_DEVICE float total(Cta& cta) const {
    float sum = sum_;
    for (const unsigned mask : {4U, 2U, 1U, 16U, 8U}) sum += cta.shuffle_xor(sum, mask);
    return sum;
  }

 private:
  float sum_ = 0;
};

}  // namespace tutti::cuda
