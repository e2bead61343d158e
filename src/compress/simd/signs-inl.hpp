// Signs of floats as bits, a vector at a time: element i is bit i mod 8 of byte i / 8. Compiled once for each
// instruction set.
#if defined(TUTTI_COMPRESS_SIGNS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_COMPRESS_SIGNS_INL
#undef TUTTI_COMPRESS_SIGNS_INL
#else
#define TUTTI_COMPRESS_SIGNS_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compress/simd/codes-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE std::uint32_t signs_of(F value) {
  return hn::GetLane(word_of_float(value)) >> 31U;
}

#else

/// The signs of one vector, in the lowest bits.
HWY_INLINE std::uint32_t signs_of(F value) {
  const Floats d;
  std::uint8_t bits[8] = {};
  hn::StoreMaskBits(d, hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(Signed(), value)))),
                    bits);
  std::uint32_t signs = 0;
  std::memcpy(&signs, bits, sizeof signs);
  return signs;
}

#endif

/// Writes the signs of `count` values, a multiple of 64; at(i) is the vector at element i.
template <class At>
HWY_INLINE void store_signs(std::size_t count, std::uint8_t* HWY_RESTRICT to, const At& at) {
  constexpr std::size_t lanes = hn::MaxLanes(Floats());
  for (std::size_t i = 0; i < count; i += 32) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 32; j += lanes) word |= signs_of(at(i + j)) << j;
    std::memcpy(to + i / 8, &word, sizeof word);
  }
}

constexpr auto lane_bits_in_order() {
  std::array<std::uint32_t, hn::MaxLanes(Words())> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = 1U << i;
  return bits;
}

alignas(64) inline constexpr auto lane_bits = lane_bits_in_order();

/// The way back: to(i, negative) gets a mask for the vector at element i.
template <class To>
HWY_INLINE void load_signs(std::size_t count, const std::uint8_t* HWY_RESTRICT from, const To& to) {
  constexpr std::size_t lanes = hn::MaxLanes(Floats());
  const Words w;
  const W bits = hn::Load(w, lane_bits.data());
  for (std::size_t i = 0; i < count; i += 32) {
    std::uint32_t word = 0;
    std::memcpy(&word, from + i / 8, sizeof word);
    for (std::size_t j = 0; j < 32; j += lanes)
      to(i + j, hn::RebindMask(Floats(), hn::TestBit(hn::Set(w, word >> j), bits)));
  }
}

}  // namespace tutti::compress::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
