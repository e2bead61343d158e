#pragma once

#include <cstdint>

#include "base/portable.hpp"
#include "compress/arithmetic/bits.hpp"
#include "compress/arithmetic/rounding.hpp"

/// Natural compression: the specification of one value. A byte holds a sign and 7 bits: 0 is zero, 1 to 126
/// are 2^-63 to 2^62, 127 is what is not finite.
namespace tutti::compress {

inline constexpr std::uint32_t natural_nan = 127;
/// What the exponent of a float's bits exceeds a code by.
inline constexpr std::uint32_t natural_bias = 63;
inline constexpr std::uint32_t natural_least_bits = (1U + natural_bias) << 23U;  ///< of 2^-63
inline constexpr std::uint32_t natural_most = 126;

/// `added` to the mantissa carries into the exponent, or does not. Below 2^-63 `small` says whether that is
/// sent, or nothing.
TUTTI_HD constexpr std::uint8_t natural_code(std::uint32_t bits, std::uint32_t added, bool small) noexcept {
  const std::uint32_t magnitude = bits & magnitude_bits;
  const std::uint32_t sign = bits >> 31U << 7U;
  if (magnitude >= infinity_bits) return static_cast<std::uint8_t>(sign | natural_nan);
  if (magnitude < natural_least_bits) return small ? static_cast<std::uint8_t>(sign | 1U) : std::uint8_t{0};
  const std::uint32_t code = ((magnitude + added) >> 23U) - natural_bias;
  return static_cast<std::uint8_t>(sign | (code > natural_most ? natural_most : code));
}

struct NaturalCode {
  /// The nearer power of two, the greater of two that are equally near.
  TUTTI_HD static std::uint8_t nearest(float value) noexcept {
    return natural_code(bits_of(value), 1U << 22U, !(float_of(bits_of(value) & magnitude_bits) < 0x1p-64F));
  }

  /// Right on average: the power above with the probability of the mantissa's fraction.
  TUTTI_HD static std::uint8_t stochastic(float value, std::uint32_t draw) noexcept {
    const float magnitude = float_of(bits_of(value) & magnitude_bits);
    return natural_code(bits_of(value), draw >> 9U, unit_of(draw) < magnitude * 0x1p63F);
  }

  TUTTI_HD static float value(std::uint8_t code) noexcept {
    const std::uint32_t power = code & 0x7FU;
    if (power == natural_nan) return float_of(quiet_nan_bits);
    if (power == 0) return 0.0F;
    return float_of((power + natural_bias) << 23U | (code & 0x80U) << 24U);
  }
};

}  // namespace tutti::compress
