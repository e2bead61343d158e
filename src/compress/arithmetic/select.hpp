#pragma once

#include <bit>
#include <cstdint>

#include "base/portable.hpp"

/// Which values a sparse codec sends, one value at a time: the specification that SIMD loops and GPU kernels
/// equal.
namespace tutti::compress {

/// |a| as a whole number of the same order; every NaN is larger than infinity.
using Key = std::uint32_t;
inline constexpr Key infinity_key = 0x7F800000U;
/// The smallest key of what is worth sending: zeros never are.
inline constexpr Key least_key = 1;

TUTTI_HD inline Key key_of(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

/// Which signs are sent.
enum class Side : std::uint8_t { both, positive, negative };

/// What is sent: of one side, at least `threshold`, which is from least_key to infinity_key. NaN and infinity
/// pass whatever the side, so that they are never left behind.
struct Cut {
  Key threshold = least_key;
  Side side = Side::both;
};

TUTTI_HD inline bool passes(float value, Cut cut) noexcept {
  const Key key = key_of(value);
  if (key < cut.threshold) return false;
  const bool negative = std::bit_cast<std::uint32_t>(value) != key;
  return cut.side == Side::both || key >= infinity_key || negative == (cut.side == Side::negative);
}

/// NaNs differ between instruction sets; on the wire there is one.
TUTTI_HD inline float canonical(float value) noexcept {
  return key_of(value) > infinity_key ? std::bit_cast<float>(0x7FC00000U) : value;
}

/// The upper half of binary32, to nearest even; one NaN.
TUTTI_HD inline std::uint16_t to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (key_of(value) > infinity_key) return 0x7FC0U;
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

TUTTI_HD inline float from_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// What stays of `value` when `sent` has gone: nothing once either is NaN or infinity, or it would be sent
/// again at every step.
TUTTI_HD inline float left_of(float value, float sent) noexcept {
  return key_of(value) >= infinity_key || key_of(sent) >= infinity_key ? 0.0F : value - sent;
}

/// ceil(density · count), but 1 of anything. A hair below the product, so that 0.07 · 100 is 7.
TUTTI_HD inline std::uint64_t entries_of(double density, std::uint64_t count) noexcept {
  const double exact = density * static_cast<double>(count) * (1 - 1e-12);
  auto whole = static_cast<std::uint64_t>(exact);
  if (static_cast<double>(whole) < exact) ++whole;
  if (whole == 0 && count > 0) return 1;
  return whole < count ? whole : count;
}

/// Elements first, first + stride, first + 2·stride …
struct Sampling {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;

  TUTTI_HD std::uint64_t size(std::uint64_t count) const noexcept {
    return first < count ? (count - first + stride - 1) / stride : 0;
  }
};

/// At least `wanted` of `count` elements (but for the last stride). The stride is odd, and 32m + 1 if it is
/// long, as in DGC's code, so that it does not keep to the columns of a matrix; the start is drawn.
TUTTI_HD inline Sampling sample(std::uint64_t count, std::uint64_t wanted, std::uint32_t draw) noexcept {
  const std::uint64_t most = wanted > 0 && count > wanted ? count / wanted : 1;
  const std::uint64_t stride = most > 32 ? (most - 1) / 32 * 32 + 1 : (most - 1) / 2 * 2 + 1;
  return {.first = draw % stride, .stride = stride};
}

/// Where entry `entry` of `entries` is: elements are cut into as many runs as there are entries, equal to
/// within one element, and one is drawn out of each.
struct Run {
  std::uint64_t first;
  std::uint64_t size;

  TUTTI_HD std::uint64_t drawn(std::uint32_t draw) const noexcept {
    // Of runs that are longer than 2^32 only the start would be drawn from; pieces are shorter.
    return first + ((size * draw) >> 32U);
  }
};

TUTTI_HD inline Run run_of(std::uint64_t entry, std::uint64_t entries, std::uint64_t count) noexcept {
  const std::uint64_t base = count / entries;
  const std::uint64_t longer = count % entries;
  const std::uint64_t before = entry < longer ? entry : longer;
  return {.first = entry * base + before, .size = base + (entry < longer ? 1U : 0U)};
}

}  // namespace tutti::compress
