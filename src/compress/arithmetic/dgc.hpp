#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"
#include "compress/arithmetic/select.hpp"

/// What Deep Gradient Compression does to numbers beyond selecting.
namespace tutti::compress {

/// The new momentum of an element. Both products are rounded, and their sum.
TUTTI_HD inline float dgc_momentum(float momentum, float gradient, float beta, float scale) noexcept {
  const float kept = beta * momentum;
  const float added = scale * gradient;
  return kept + added;
}

/// Warm-up: four steps down to `density`.
TUTTI_HD inline double dgc_density(double density, std::uint64_t step, std::uint64_t warmup) noexcept {
  if (step >= warmup) return density;
  constexpr std::array<double, 4> stages{0.25, 0.063, 0.015, 0.004};
  const double stage = stages[static_cast<std::size_t>(4 * step / warmup)];
  return stage > density ? stage : density;
}

/// What to scale a gradient by, so that the norm of the mean of `ranks` independent ones is below `clip`. NaN
/// and infinity are for the values to show: they scale by 1.
TUTTI_HD inline float dgc_scale(double norm, double clip, std::uint64_t ranks) noexcept {
  const double limit = clip / std::sqrt(static_cast<double>(ranks));
  const bool finite = norm <= 1.7e308;
  return clip > 0 && finite && norm > limit ? static_cast<float>(limit / norm) : 1.0F;
}

/// 0.8 of a threshold.
TUTTI_HD inline Key dgc_lower(Key threshold) noexcept {
  const Key lower = key_of(0.8F * std::bit_cast<float>(threshold));
  return lower > least_key ? lower : least_key;
}

/// In fp64, where squares are exact: eight sums, of every eighth element, added by halves.
TUTTI_HD inline double sum_of_squares(const float* values, std::size_t count) noexcept {
  double sums[8] = {};
  for (std::size_t i = 0; i < count; ++i)
    sums[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (std::size_t half = 4; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace tutti::compress
