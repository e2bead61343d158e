#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"
#include "compress/arithmetic/bits.hpp"
#include "compress/arithmetic/rounding.hpp"

/// Values scaled by block: the specification of int8, int4, fp8, ternary and qsgd, for one value and one
/// block; scales.hpp has the scales that are not by the block's largest. A code is what a byte of the payload
/// holds (for less than 8 bits: sign-extended, before several are packed in one).
namespace tutti::compress {

struct BlockScale {
  float scale = 0;       ///< what is sent: a value is its code times this
  float reciprocal = 0;  ///< what values are multiplied by before they are rounded
};

/// `largest`: the greatest of the values' magnitudes as bits, so that NaN counts as the greatest of all and
/// the order of comparing does not matter. Codes reach to `codes`.
///
/// A block of zeros has scale 0; one with a NaN or an infinity has scale NaN. Scales below the least normal
/// number are raised to it: their reciprocals would overflow, or the scale vanish. What such a block loses is
/// at most half of that number, 6e-39.
TUTTI_HD inline BlockScale block_scale(std::uint32_t largest, float codes) noexcept {
  if (largest >= infinity_bits) return {float_of(quiet_nan_bits), float_of(quiet_nan_bits)};
  if (largest == 0) return {0.0F, 0.0F};
  constexpr float least = 0x1p-126F;
  const float exact = float_of(largest) / codes;
  const float raised = exact < least ? least : exact;
  // Rounded up, it may carry the largest value of all beyond the finite ones.
  const bool beyond = bits_of(raised * codes) >= infinity_bits;
  const float scale = beyond ? float_of(bits_of(raised) - 1) : raised;
  return {scale, 1.0F / scale};
}

/// A scale that no finite block has: all of its values are NaN, the canonical one.
TUTTI_HD inline bool is_nan_scale(float scale) noexcept {
  return (bits_of(scale) & magnitude_bits) >= infinity_bits;
}

/// Whole numbers from -levels to levels. Values scaled by the largest are at most levels · (1 + 2^-22): to
/// nearest they need no limit; others do.
template <int levels>
struct WholeCode {
  static constexpr float largest = static_cast<float>(levels);

  TUTTI_HD static std::uint8_t nearest(float scaled) noexcept { return code(whole_nearest(scaled)); }

  TUTTI_HD static std::uint8_t limited(float scaled) noexcept {
    return nearest(scaled > largest ? largest : scaled < -largest ? -largest : scaled);
  }

  TUTTI_HD static std::uint8_t stochastic(float scaled, std::uint32_t draw) noexcept {
    const float limited = scaled > largest ? largest : scaled < -largest ? -largest : scaled;
    return code(whole_stochastic(limited, draw));
  }

  TUTTI_HD static float value(std::uint8_t code) noexcept {
    return static_cast<float>(static_cast<std::int8_t>(code));
  }

 private:
  TUTTI_HD static std::uint8_t code(float whole) noexcept {
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(whole));
  }
};

/// fp8 e4m3 of the Open Compute Project's 8-bit floating point specification (OFP8 1.0): a sign, 4 bits of
/// exponent with bias 7, 3 of mantissa, denormals, no infinity, NaN 0x7F and 0xFF, largest 448. Its numbers
/// are whole multiples of an eighth of the power of two below them, or of 2^-6 if that is greater: so
/// rounding is rounding to whole numbers, of the magnitude, and keeps the sign.
struct Float8Code {
  static constexpr float largest = 448.0F;

  TUTTI_HD static std::uint8_t nearest(float scaled) noexcept {
    const Parts parts = parts_of(scaled);
    return code(parts, whole_nearest(parts.eighths));
  }

  TUTTI_HD static std::uint8_t stochastic(float scaled, std::uint32_t draw) noexcept {
    const float limited = scaled > largest ? largest : scaled < -largest ? -largest : scaled;
    const Parts parts = parts_of(limited);
    return code(parts, whole_stochastic(parts.eighths, draw));
  }

  TUTTI_HD static float value(std::uint8_t code) noexcept {
    const std::uint32_t magnitude = code & 0x7FU;
    if (magnitude == 0x7FU) return float_of(quiet_nan_bits);
    const float positive = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9F
                                         : float_of((magnitude << 20U) + (120U << 23U));
    return float_of(bits_of(positive) | (code & 0x80U) << 24U);
  }

 private:
  struct Parts {
    std::uint32_t sign;   ///< as bit 7
    std::uint32_t power;  ///< the power of two below, its exponent as in a float's bits
    float eighths;        ///< the magnitude in eighths of that, below 16
  };

  TUTTI_HD static Parts parts_of(float scaled) noexcept {
    const std::uint32_t bits = bits_of(scaled);
    const float magnitude = float_of(bits & magnitude_bits);
    const std::uint32_t power = bits_of(magnitude < 0x1p-6F ? 0x1p-6F : magnitude) & infinity_bits;
    return {bits >> 31U << 7U, power, magnitude * float_of((257U << 23U) - power)};
  }

  /// 16 eighths are 8 of the next power of two: the codes go on.
  TUTTI_HD static std::uint8_t code(const Parts& parts, float whole) noexcept {
    const std::uint32_t magnitude = (parts.power >> 20U) - 968U + static_cast<std::uint32_t>(whole);
    return static_cast<std::uint8_t>(parts.sign | magnitude);
  }
};

/// Two codes of int4 in one byte, the first in the lower half.
TUTTI_HD constexpr std::uint8_t pack_halves(std::uint8_t first, std::uint8_t second) noexcept {
  return static_cast<std::uint8_t>((first & 0x0FU) | (second & 0x0FU) << 4U);
}

/// The code in one half of a byte: the first or the second.
TUTTI_HD constexpr std::uint8_t unpack_half(std::uint8_t packed, bool second) noexcept {
  const unsigned half = second ? packed >> 4U : packed & 0x0FU;
  return static_cast<std::uint8_t>((half ^ 8U) - 8U);
}

/// Four codes of ternary in one byte, the first in the lowest bits.
TUTTI_HD constexpr std::uint8_t pack_quarters(std::uint8_t a, std::uint8_t b, std::uint8_t c,
                                              std::uint8_t d) noexcept {
  return static_cast<std::uint8_t>((a & 3U) | (b & 3U) << 2U | (c & 3U) << 4U | (d & 3U) << 6U);
}

/// The code in one quarter of a byte, 0 to 3. The encoder writes -1, 0 and 1 only.
TUTTI_HD constexpr std::uint8_t unpack_quarter(std::uint8_t packed, unsigned quarter) noexcept {
  return static_cast<std::uint8_t>((((packed >> 2 * quarter) & 3U) ^ 2U) - 2U);
}

/// onebit: a scale with the sign of a value, which is the bit.
TUTTI_HD inline float signed_scale(float scale, unsigned sign) noexcept {
  return float_of(bits_of(scale) ^ static_cast<std::uint32_t>(sign) << 31U);
}

/// The wire: one fp32 scale a block, zero bytes up to a multiple of 16, the payload. Where the message is
/// aligned to 16 bytes, so is the payload of every block.
TUTTI_HD constexpr std::size_t block_scale_bytes(std::size_t count, std::size_t block) noexcept {
  return ((count + block - 1) / block * sizeof(float) + 15) / 16 * 16;
}

}  // namespace tutti::compress
