#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "compress/arithmetic/block.hpp"
#include "compress/arithmetic/format.hpp"
#include "compress/arithmetic/philox.hpp"
#include "cuda/kernels/cta.hpp"

/// Four codes of a format by one thread, and the bytes that they are in a payload.
namespace tutti::cuda {

template <compress::BlockFormat format>
struct CodeOf {
  static constexpr int levels = compress::bits_in(format) == 8 ? 127 : compress::bits_in(format) == 4 ? 7 : 1;
  using type = std::conditional_t<format == compress::BlockFormat::fp8, compress::Float8Code,
                                  compress::WholeCode<levels>>;
};

/// The draws of element `first` and the three after it.
TUTTI_DEVICE inline void draw_four(const compress::Draws& draws, std::uint64_t first,
                                   std::uint32_t (&draw)[4]) {
  const auto here = draws.group(first / 4);
  const auto skipped = static_cast<unsigned>(first % 4);
  if (skipped == 0) {
    for (unsigned j = 0; j < 4; ++j) draw[j] = here[j];
    return;
  }
  const auto next = draws.group(first / 4 + 1);
  draw[0] = pick(here[0], here[1], here[2], here[3], skipped);
  draw[1] = pick(here[1], here[2], here[3], next[0], skipped);
  draw[2] = pick(here[2], here[3], next[0], next[1], skipped);
  draw[3] = pick(here[3], next[0], next[1], next[2], skipped);
}

/// Four codes, a byte each, as the bits that a payload has of them.
template <unsigned bits>
TUTTI_DEVICE std::uint32_t pack_four(const std::uint8_t (&code)[4]) {
  using compress::pack_halves;
  if constexpr (bits == 8)
    return code[0] | code[1] << 8U | code[2] << 16U | static_cast<std::uint32_t>(code[3]) << 24U;
  if constexpr (bits == 4)
    return pack_halves(code[0], code[1]) | static_cast<std::uint32_t>(pack_halves(code[2], code[3])) << 8U;
  if constexpr (bits == 2) return compress::pack_quarters(code[0], code[1], code[2], code[3]);
  return (code[0] & 1U) | (code[1] & 1U) << 1U | (code[2] & 1U) << 2U | (code[3] & 1U) << 3U;
}

/// The code of value j of four, from those bits.
template <unsigned bits>
TUTTI_DEVICE std::uint8_t unpack_one(std::uint32_t packed, unsigned j) {
  if constexpr (bits == 8) return static_cast<std::uint8_t>(packed >> 8U * j);
  if constexpr (bits == 4)
    return compress::unpack_half(static_cast<std::uint8_t>(packed >> 8U * (j / 2)), j % 2 != 0);
  if constexpr (bits == 2) return compress::unpack_quarter(static_cast<std::uint8_t>(packed), j);
  return static_cast<std::uint8_t>(packed >> j & 1U);
}

/// Stores what four codes are, `valid` of them, at the payload's place for element `at`, a multiple of four.
/// All lanes of a warp: two share a byte where a value has one bit.
template <unsigned bits, class Cta>
TUTTI_DEVICE void store_codes(Cta& cta, std::byte* payload, std::uint64_t at, std::uint32_t packed,
                              unsigned valid) {
  std::byte* to = payload + at * bits / 8;
  if constexpr (bits == 1) {
    const std::uint32_t next = cta.shuffle_xor(packed, 1);
    if (cta.lane() % 2 == 0 && valid > 0) *to = static_cast<std::byte>(packed | next << 4U);
  } else if (valid == 4) {
    if constexpr (bits == 8) *reinterpret_cast<std::uint32_t*>(to) = packed;
    if constexpr (bits == 4) *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(packed);
    if constexpr (bits == 2) *to = static_cast<std::byte>(packed);
  } else {
    const unsigned bytes = (valid * bits + 7) / 8;
    for (unsigned i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(packed >> 8 * i);
  }
}

/// What store_codes() wrote.
template <unsigned bits>
TUTTI_DEVICE std::uint32_t load_codes(const std::byte* payload, std::uint64_t at, unsigned valid) {
  const std::byte* from = payload + at * bits / 8;
  if constexpr (bits == 1) return valid == 0 ? 0 : static_cast<std::uint32_t>(*from) >> (at % 8 == 0 ? 0 : 4);
  if (valid == 4) {
    if constexpr (bits == 8) return *reinterpret_cast<const std::uint32_t*>(from);
    if constexpr (bits == 4) return *reinterpret_cast<const std::uint16_t*>(from);
    return static_cast<std::uint32_t>(*from);
  }
  std::uint32_t packed = 0;
  const unsigned bytes = (valid * bits + 7) / 8;
  for (unsigned i = 0; i < bytes; ++i) packed |= static_cast<std::uint32_t>(from[i]) << 8 * i;
  return packed;
}

/// A value from its code.
template <compress::BlockFormat format>
TUTTI_DEVICE float decode_one(std::uint32_t packed, unsigned j, float scale) {
  const std::uint8_t code = unpack_one<compress::bits_in(format)>(packed, j);
  if constexpr (format == compress::BlockFormat::onebit) return compress::signed_scale(scale, code);
  return CodeOf<format>::type::value(code) * scale;
}

/// Four values from element `at` on, a multiple of four, of a message of `count` elements.
template <compress::BlockFormat format>
TUTTI_DEVICE Four decode_four(const std::byte* message, std::uint64_t count, std::uint32_t block,
                              std::uint64_t at, unsigned valid) {
  Four four{};
  if (valid == 0) return four;
  const float scale = reinterpret_cast<const float*>(message)[at / block];
  const std::byte* payload = message + compress::block_scale_bytes(count, block);
  const std::uint32_t packed = load_codes<compress::bits_in(format)>(payload, at, valid);
  for (unsigned j = 0; j < 4; ++j) {
    const float value = compress::is_nan_scale(scale) ? compress::float_of(compress::quiet_nan_bits)
                                                      : decode_one<format>(packed, j, scale);
    if (j < valid) four.v[j] = value;
  }
  return four;
}

}  // namespace tutti::cuda
