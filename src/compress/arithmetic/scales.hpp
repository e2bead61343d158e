#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"
#include "compress/arithmetic/bits.hpp"
#include "compress/arithmetic/block.hpp"

/// Scales of blocks that are sums: means and norms. Their order is laid down, so that every vector length and
/// a warp of a GPU get the same bits.
namespace tutti::compress {

/// Element i belongs to lane i mod 32; a lane adds its own in order; then each lane of the lower half adds
/// that of the upper half, until one is left. Zeros at the end change nothing.
class OrderedSum {
 public:
  static constexpr std::size_t lanes = 32;

  TUTTI_HD constexpr void add(std::size_t i, float value) noexcept { lanes_[i % lanes] += value; }

  TUTTI_HD constexpr float total() const noexcept {
    std::array<float, lanes> left = lanes_;
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) left[i] += left[i + half];
    }
    return left[0];
  }

 private:
  std::array<float, lanes> lanes_{};
};

inline constexpr float most_float = 3.40282347e+38F;

/// What magnitudes are multiplied by before they are added up to half their mean: the sum of finite ones
/// cannot overflow then.
TUTTI_HD inline float half_mean_factor(std::size_t count) noexcept {
  return 0.5F / static_cast<float>(count);
}

/// Twice that, finite for finite values; NaN with a NaN or an infinity among them.
TUTTI_HD inline float mean_scale(float half_mean) noexcept {
  if (!(half_mean <= most_float)) return float_of(quiet_nan_bits);
  const float mean = 2.0F * half_mean;
  return mean > most_float ? most_float : mean;
}

/// The reciprocal of ternary: what is above 0.7 means in magnitude gets beyond a half (Li, Zhang, Liu,
/// Ternary weight networks, 2016, section 2.2). Below 2^-100 on average nothing is sent.
TUTTI_HD inline float ternary_reciprocal(float half_mean) noexcept {
  if (!(half_mean <= most_float)) return float_of(quiet_nan_bits);
  return half_mean < 0x1p-101F ? 0.0F : 0.5F / (1.4F * half_mean);
}

/// The mean of the `above` values that are sent. `half`: the sum of their magnitudes times
/// half_mean_factor().
TUTTI_HD inline float ternary_scale(float half, float above, std::size_t count) noexcept {
  if (above == 0.0F) return 0.0F;
  const float mean = half / above * (2.0F * static_cast<float>(count));
  return mean > most_float ? most_float : mean;
}

/// The Euclidean norm in steps of `levels`. `squares`: the sum of squares of values over `largest`.
TUTTI_HD inline BlockScale norm_scale(std::uint32_t largest, float squares, float levels) noexcept {
  const BlockScale unit = block_scale(largest, 1.0F);
  if (is_nan_scale(unit.scale) || unit.scale == 0.0F) return unit;
  const float steps = std::sqrt(squares) / levels;
  const float most = most_float / levels;
  const float step = unit.scale * steps > most ? most : unit.scale * steps;
  const float least = 0x1p-126F;
  const float scale = step < least ? least : step;
  return {scale, 1.0F / scale};
}

/// terngrad: `unit`, the block_scale() of the largest with 1, but at most `clip` times the root of the mean
/// of squares of values over the largest (Wen et al., TernGrad, NeurIPS 2017, section 3.3).
TUTTI_HD inline BlockScale clipped_to(const BlockScale& unit, double mean_square, float clip) noexcept {
  const auto share = static_cast<float>(std::sqrt(mean_square));
  const float scale = clip * share < 1.0F ? clip * share * unit.scale : unit.scale;
  const float least = 0x1p-126F;
  const float raised = scale < least ? least : scale;
  return {raised, 1.0F / raised};
}

}  // namespace tutti::compress
