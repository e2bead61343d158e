#pragma once

#include <cmath>
#include <cstdint>

#include "base/portable.hpp"

namespace tutti::compress {

/// 1.5 · 2^23: floats around it are whole numbers, and their lowest bits are the number in two's complement.
inline constexpr float whole_magic = 12582912.0F;
inline constexpr std::uint32_t whole_magic_bits = 0x4B400000U;

/// The whole number nearest to `x`, ties to even; never -0. |x| < 2^22.
TUTTI_HD inline float whole_nearest(float x) noexcept {
  return (x + whole_magic) - whole_magic;
}

/// A draw as a number of [0, 1), exact.
TUTTI_HD inline float unit_of(std::uint32_t draw) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(draw >> 8U)) * 0x1p-24F;
}

/// The whole number below or above `x`, above with the probability of what is cut off: right on average. A
/// whole `x` stays.
TUTTI_HD inline float whole_stochastic(float x, std::uint32_t draw) noexcept {
  const float below = std::floor(x);
  return below + (unit_of(draw) < x - below ? 1.0F : 0.0F);
}

}  // namespace tutti::compress
