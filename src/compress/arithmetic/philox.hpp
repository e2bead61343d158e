#pragma once

#include <array>
#include <cstdint>

#include "base/portable.hpp"

namespace tutti::compress {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011): 128 bits
/// that depend on a counter and a key only, so that CPU, GPU and any number of ranks draw the same.
TUTTI_HD constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                       std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// What a draw of a codec depends on: never on buckets, and on the rank only through `rank`.
struct Draws {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t parameter = 0;
  std::uint32_t rank = 0;

  TUTTI_HD constexpr std::array<std::uint32_t, 4> counter(std::uint64_t group) const noexcept {
    return {static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32U),
            static_cast<std::uint32_t>(step), parameter};
  }

  TUTTI_HD constexpr std::array<std::uint32_t, 2> key() const noexcept {
    return {static_cast<std::uint32_t>(seed) ^ static_cast<std::uint32_t>(step >> 32U) * 0x85EBCA6BU,
            static_cast<std::uint32_t>(seed >> 32U) ^ rank * 0x9E3779B1U};
  }

  /// Four draws of 32 bits, for elements 4·group … 4·group + 3 of the parameter.
  TUTTI_HD constexpr std::array<std::uint32_t, 4> group(std::uint64_t group) const noexcept {
    return philox(counter(group), key());
  }

  /// The draw of one element of the parameter.
  TUTTI_HD constexpr std::uint32_t of(std::uint64_t element) const noexcept {
    return group(element / 4)[element % 4];
  }
};

}  // namespace tutti::compress
