#pragma once

#include <cstdint>

#include "base/bits.hpp"

/// Half types from and to fp32, for one value, with integers only: the same bits on CPU and GPU. Rounded to
/// nearest even; NaN becomes the canonical one, 0x7E00 and 0x7FC0.
namespace tutti::kernel {

TUTTI_HD inline float from_bfloat16(std::uint16_t bits) noexcept {
  return base::float_of(std::uint32_t{bits} << 16U);
}

TUTTI_HD inline std::uint16_t to_bfloat16(float value) noexcept {
  const std::uint32_t bits = base::bits_of(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U);
}

TUTTI_HD inline float from_float16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16U;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  // Denormals: a whole number of 2^-24, exact.
  if (magnitude < 0x0400U)
    return base::float_of(base::bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F) |
                          sign);
  if (magnitude >= 0x7C00U) return base::float_of(sign | 0x7F800000U | (magnitude & 0x03FFU) << 13U);
  return base::float_of(sign | ((magnitude << 13U) + (112U << 23U)));
}

TUTTI_HD inline std::uint16_t to_float16(float value) noexcept {
  const std::uint32_t bits = base::bits_of(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return 0x7E00;
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65520 and above
  if (magnitude < 0x38800000U) {
    // Below 2^-14 adding 1/2 leaves whole numbers of 2^-24 in the lowest bits, rounded by the addition.
    const std::uint32_t shifted = base::bits_of(base::float_of(magnitude) + 0.5F) - base::bits_of(0.5F);
    return static_cast<std::uint16_t>(sign | shifted);
  }
  const std::uint32_t rounded = magnitude - (112U << 23U) + 0x0FFFU + (magnitude >> 13U & 1U);
  return static_cast<std::uint16_t>(sign | rounded >> 13U);
}

}  // namespace tutti::kernel
