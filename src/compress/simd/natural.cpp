#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/simd/natural.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compress/arithmetic/natural.hpp"
#include "compress/simd/codes-inl.hpp"
#include "compress/simd/natural.hpp"
#include "compress/simd/philox-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::HWY_NAMESPACE {

/// Values that are taken at once; whole fours of vectors on every instruction set.
inline constexpr std::size_t chunk = 64;

HWY_INLINE W magnitude_of(W bits) {
  return hn::And(bits, hn::Set(Words(), magnitude_bits));
}

/// natural_code(): codes in the lowest byte of each lane.
template <bool stochastic>
HWY_INLINE W natural_codes(F value, const std::uint32_t* draws) {
  const Floats d;
  const Words w;
  const Signed s;
  const W bits = word_of_float(value);
  const W magnitude = magnitude_of(bits);
  W added = hn::Set(w, 1U << 22U);
  auto small = hn::Not(hn::Lt(float_of_word(magnitude), hn::Set(d, 0x1p-64F)));
  if constexpr (stochastic) {
    const W draw = hn::LoadU(w, draws);
    added = hn::ShiftRight<9>(draw);
    const F unit = hn::Mul(hn::ConvertTo(d, hn::BitCast(s, hn::ShiftRight<8>(draw))), hn::Set(d, 0x1p-24F));
    small = hn::Lt(unit, hn::Mul(float_of_word(magnitude), hn::Set(d, 0x1p63F)));
  }
  // Magnitudes are positive as signed numbers too, which every instruction set compares.
  const auto as_signed = [&](W x) HWY_ATTR { return hn::BitCast(s, x); };
  const W power = hn::Sub(hn::ShiftRight<23>(hn::Add(magnitude, added)), hn::Set(w, natural_bias));
  const W limited =
      hn::BitCast(w, hn::Min(as_signed(power), hn::Set(s, static_cast<std::int32_t>(natural_most))));
  const auto below = hn::RebindMask(
      w, hn::Lt(as_signed(magnitude), hn::Set(s, static_cast<std::int32_t>(natural_least_bits))));
  const auto beyond = hn::RebindMask(
      w, hn::Lt(hn::Set(s, static_cast<std::int32_t>(infinity_bits - 1)), as_signed(magnitude)));
  const W one = hn::IfThenElseZero(hn::RebindMask(w, small), hn::Set(w, 1U));
  const W code = hn::IfThenElse(beyond, hn::Set(w, natural_nan), hn::IfThenElse(below, one, limited));
  const W sign = hn::ShiftLeft<7>(hn::ShiftRight<31>(bits));
  const auto none = hn::Eq(code, hn::Zero(w));
  return hn::Or(code, hn::IfThenZeroElse(none, sign));
}

/// NaturalCode::value() of codes in the lowest byte of each lane.
HWY_INLINE F natural_values(W code) {
  const Words w;
  const W power = hn::And(code, hn::Set(w, 0x7FU));
  const W sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(w, 0x80U)));
  const W bits = hn::Or(hn::ShiftLeft<23>(hn::Add(power, hn::Set(w, natural_bias))), sign);
  const auto nan = hn::Eq(power, hn::Set(w, natural_nan));
  const auto none = hn::Eq(power, hn::Zero(w));
  return float_of_word(hn::IfThenZeroElse(none, hn::IfThenElse(nan, hn::Set(w, quiet_nan_bits), bits)));
}

template <bool stochastic, bool feedback>
HWY_INLINE void encode_chunk(const float* HWY_RESTRICT in, float* HWY_RESTRICT residual,
                             const std::uint32_t* HWY_RESTRICT draws, std::uint8_t* HWY_RESTRICT out) {
  const Floats d;
  const Words w;
  const std::size_t lanes = hn::Lanes(d);
  const Narrow narrow;
  const auto at = [&](std::size_t i) HWY_ATTR {
    F value = hn::LoadU(d, in + i);
    if constexpr (feedback) value = hn::Add(value, hn::LoadU(d, residual + i));
    const W codes = natural_codes<stochastic>(value, draws + i);
    if constexpr (feedback) {
      const auto nan = hn::Eq(hn::And(codes, hn::Set(w, 0x7FU)), hn::Set(w, natural_nan));
      const F left = hn::Sub(value, natural_values(codes));
      hn::StoreU(hn::IfThenElse(hn::RebindMask(d, nan), hn::LoadU(d, residual + i), left), d, residual + i);
    }
    return codes;
  };
  for (std::size_t i = 0; i < chunk; i += 4 * lanes) {
    const W a = at(i);
    const W b = at(i + lanes);
    const W c = at(i + 2 * lanes);
    narrow.store(a, b, c, at(i + 3 * lanes), out + i);
  }
}

template <bool stochastic, bool feedback>
HWY_ATTR void encode_all(const Draws* draws, std::uint64_t first, std::span<const float> in, float* residual,
                         std::uint8_t* out) {
  constexpr std::size_t most = 1024;
  alignas(64) std::uint32_t some[most + 4 + draws_slack];
  const std::size_t skipped = first % 4;
  for (std::size_t at = 0; at < in.size(); at += chunk) {
    const std::size_t count = std::min(chunk, in.size() - at);
    if (stochastic && at % most == 0)
      fill_draws(*draws, (first + at) / 4, std::min(most, in.size() - at) + skipped, some);
    const std::uint32_t* drawn = some + skipped + at % most;
    float* kept = feedback ? residual + at : nullptr;
    if (count == chunk) {
      encode_chunk<stochastic, feedback>(in.data() + at, kept, drawn, out + at);
      continue;
    }
    alignas(64) float last[chunk] = {};
    alignas(64) float last_kept[chunk] = {};
    alignas(64) std::uint8_t codes[chunk];
    alignas(64) std::uint32_t last_drawn[chunk] = {};
    std::copy_n(in.data() + at, count, last);
    if constexpr (feedback) std::copy_n(kept, count, last_kept);
    if constexpr (stochastic) std::copy_n(drawn, count, last_drawn);
    encode_chunk<stochastic, feedback>(last, last_kept, last_drawn, codes);
    if constexpr (feedback) std::copy_n(last_kept, count, kept);
    std::copy_n(codes, count, out + at);
  }
}

HWY_ATTR void encode_natural_here(const Draws* draws, std::uint64_t first, std::span<const float> in,
                                  float* residual, std::uint8_t* out) {
  if (draws != nullptr && residual != nullptr) return encode_all<true, true>(draws, first, in, residual, out);
  if (draws != nullptr) return encode_all<true, false>(draws, first, in, residual, out);
  if (residual != nullptr) return encode_all<false, true>(draws, first, in, residual, out);
  encode_all<false, false>(draws, first, in, residual, out);
}

template <bool add>
HWY_INLINE void decode_some(const std::uint8_t* HWY_RESTRICT in, std::size_t count, float* HWY_RESTRICT out) {
  const Floats d;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    F value = natural_values(hn::PromoteTo(Words(), hn::LoadU(bytes, in + i)));
    if constexpr (add) value = hn::Add(hn::LoadU(d, out + i), value);
    hn::StoreU(value, d, out + i);
  }
}

template <bool add>
HWY_ATTR void decode_all(const std::uint8_t* in, std::span<float> out) {
  const std::size_t whole = out.size() / chunk * chunk;
  decode_some<add>(in, whole, out.data());
  const std::size_t rest = out.size() - whole;
  if (rest == 0) return;
  alignas(64) std::uint8_t codes[chunk] = {};
  alignas(64) float values[chunk] = {};
  std::copy_n(in + whole, rest, codes);
  if constexpr (add) std::copy_n(out.data() + whole, rest, values);
  decode_some<add>(codes, chunk, values);
  std::copy_n(values, rest, out.data() + whole);
}

HWY_ATTR void decode_natural_here(const std::uint8_t* in, std::span<float> out, bool add) {
  if (add) return decode_all<true>(in, out);
  decode_all<false>(in, out);
}

}  // namespace tutti::compress::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tutti::compress {

HWY_EXPORT(encode_natural_here);
HWY_EXPORT(decode_natural_here);

void encode_natural(const Draws* draws, std::uint64_t first, std::span<const float> in, float* residual,
                    std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_natural_here)(draws, first, in, residual, out);
}

void decode_natural(const std::uint8_t* in, std::span<float> out, bool add) {
  HWY_DYNAMIC_DISPATCH(decode_natural_here)(in, out, add);
}

}  // namespace tutti::compress
#endif
