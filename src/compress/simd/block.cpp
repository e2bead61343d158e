#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/simd/block.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compress/arithmetic/block.hpp"
#include "compress/simd/block.hpp"
#include "compress/simd/codes-inl.hpp"
#include "compress/simd/philox-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::HWY_NAMESPACE {

/// Vectors are taken four at a time; 64 values are whole fours on every instruction set here.
inline constexpr std::size_t grain = 64;
static_assert(grain % (4 * hn::MaxLanes(Floats())) == 0);

/// What a block needs while it is encoded. A message's last block, if it is not of whole grains, is copied
/// here and followed by zeros.
struct Scratch {
  alignas(64) float values[most_in_block];
  alignas(64) float last[most_in_block];
  alignas(64) float last_residual[most_in_block];
  alignas(64) std::uint8_t codes[most_in_block];
  alignas(64) std::uint8_t last_payload[most_in_block];
  alignas(64) std::uint32_t draws[most_in_block + 4 + draws_slack];
};

/// sums = in + residual, if there is one. Returns the greatest magnitude, as bits.
template <bool feedback>
HWY_INLINE std::uint32_t largest_of(const float* HWY_RESTRICT in, const float* HWY_RESTRICT residual,
                                    std::size_t count, float* HWY_RESTRICT sums) {
  const Floats d;
  const Signed s;
  const std::size_t lanes = hn::Lanes(d);
  const auto mask = hn::Set(s, static_cast<std::int32_t>(magnitude_bits));
  auto most = hn::Zero(s);
  auto other = hn::Zero(s);
  const auto at = [&](std::size_t i) HWY_ATTR {
    F value = hn::LoadU(d, in + i);
    if constexpr (feedback) {
      value = hn::Add(value, hn::LoadU(d, residual + i));
      hn::Store(value, d, sums + i);
    }
    return hn::And(hn::BitCast(s, value), mask);
  };
  for (std::size_t i = 0; i < count; i += 2 * lanes) {
    most = hn::Max(most, at(i));
    other = hn::Max(other, at(i + lanes));
  }
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(s, hn::Max(most, other))));
}

/// One block of whole grains. `codes`: a byte for each value. `draws`: null to round to nearest.
template <class Lanes, class Rounding, bool feedback>
HWY_INLINE float encode_block(const float* HWY_RESTRICT in, float* HWY_RESTRICT residual, std::size_t count,
                              float largest, std::uint8_t* HWY_RESTRICT codes,
                              const std::uint32_t* HWY_RESTRICT draws, float* HWY_RESTRICT sums) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const BlockScale block = block_scale(largest_of<feedback>(in, residual, count, sums), largest);
  if (is_nan_scale(block.scale)) {
    std::memset(codes, 0, count);
    return block.scale;
  }
  const float* HWY_RESTRICT from = feedback ? sums : in;
  const F reciprocal = hn::Set(d, block.reciprocal);
  const F scale = hn::Set(d, block.scale);
  const Rounding rounding;
  const Narrow narrow;
  const auto at = [&](std::size_t i) HWY_ATTR {
    const F value = hn::LoadU(d, from + i);
    const Coded coded = Lanes::encode(hn::Mul(value, reciprocal), largest, rounding, draws + i);
    if constexpr (feedback) hn::StoreU(hn::Sub(value, hn::Mul(coded.values, scale)), d, residual + i);
    return coded.codes;
  };
  for (std::size_t i = 0; i < count; i += 4 * lanes) {
    const W a = at(i);
    const W b = at(i + lanes);
    const W c = at(i + 2 * lanes);
    narrow.store(a, b, c, at(i + 3 * lanes), codes + i);
  }
  return block.scale;
}

/// One format, one rounding, with or without feedback.
template <class Lanes, class Rounding, bool feedback, bool halves>
class Encoder {
 public:
  Encoder(const Draws& draws, float largest) : draws_(draws), largest_(largest) {}

  HWY_ATTR void all(std::size_t block, std::uint64_t first, std::span<const float> in, float* residual,
                    std::byte* out) {
    auto* payload = reinterpret_cast<std::uint8_t*>(out) + block_scale_bytes(in.size(), block);
    std::byte* scales = out;
    for (std::size_t at = 0; at < in.size(); at += block) {
      const std::size_t count = std::min(block, in.size() - at);
      float* kept = feedback ? residual + at : nullptr;
      const float scale = count % grain == 0 ? one(first + at, in.data() + at, kept, count, payload)
                                             : last(first + at, in.data() + at, kept, count, payload);
      std::memcpy(scales, &scale, sizeof scale);
      scales += sizeof scale;
      payload += halves ? (count + 1) / 2 : count;
    }
    const std::size_t used = static_cast<std::size_t>(scales - out);
    std::memset(scales, 0, block_scale_bytes(in.size(), block) - used);
  }

 private:
  HWY_ATTR float one(std::uint64_t first, const float* in, float* residual, std::size_t count,
                     std::uint8_t* payload) {
    const std::size_t skipped = first % 4;
    if constexpr (Rounding::draws) fill_draws(draws_, first / 4, count + skipped, scratch_.draws);
    std::uint8_t* codes = halves ? scratch_.codes : payload;
    const float scale = encode_block<Lanes, Rounding, feedback>(in, residual, count, largest_, codes,
                                                                scratch_.draws + skipped, scratch_.values);
    if constexpr (halves) pack_codes(codes, count, payload);
    return scale;
  }

  HWY_ATTR float last(std::uint64_t first, const float* in, float* residual, std::size_t count,
                      std::uint8_t* payload) {
    const std::size_t padded = (count + grain - 1) / grain * grain;
    const auto copy = [&](const float* from, float* to) {
      std::memcpy(to, from, count * sizeof(float));
      std::memset(to + count, 0, (padded - count) * sizeof(float));
    };
    copy(in, scratch_.last);
    if constexpr (feedback) copy(residual, scratch_.last_residual);
    const float scale =
        one(first, scratch_.last, feedback ? scratch_.last_residual : nullptr, padded, scratch_.last_payload);
    if constexpr (feedback) std::memcpy(residual, scratch_.last_residual, count * sizeof(float));
    std::memcpy(payload, scratch_.last_payload, halves ? (count + 1) / 2 : count);
    return scale;
  }

  const Draws& draws_;
  float largest_;
  Scratch scratch_;
};

template <class Lanes, bool halves>
HWY_ATTR void encode_format(const BlockShape& shape, const Draws& draws, float largest, std::uint64_t first,
                            std::span<const float> in, float* residual, std::byte* out) {
  const auto run = [&](auto encoder) { encoder.all(shape.block, first, in, residual, out); };
  if (shape.stochastic) {
    if (residual != nullptr) return run(Encoder<Lanes, Stochastic, true, halves>(draws, largest));
    return run(Encoder<Lanes, Stochastic, false, halves>(draws, largest));
  }
  if (residual != nullptr) return run(Encoder<Lanes, Nearest, true, halves>(draws, largest));
  run(Encoder<Lanes, Nearest, false, halves>(draws, largest));
}

HWY_ATTR void encode_blocks_here(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                                 std::span<const float> in, float* residual, std::byte* out) {
  switch (shape.format) {
    case BlockFormat::int8:
      return encode_format<WholeLanes, false>(shape, draws, WholeCode<127>::largest, first, in, residual,
                                              out);
    case BlockFormat::int4:
      return encode_format<WholeLanes, true>(shape, draws, WholeCode<7>::largest, first, in, residual, out);
    case BlockFormat::fp8:
      return encode_format<Float8Lanes, false>(shape, draws, Float8Code::largest, first, in, residual, out);
  }
}

/// One block of whole grains.
template <class Lanes, bool add>
HWY_INLINE void decode_block(const std::uint8_t* HWY_RESTRICT codes, float scale, std::size_t count,
                             float* HWY_RESTRICT out) {
  const Floats d;
  const F factor = hn::Set(d, scale);
  const std::size_t lanes = hn::Lanes(d);
  const auto at = [&](std::size_t i) HWY_ATTR {
    F value = hn::Mul(Lanes::decode(codes + i), factor);
    if constexpr (add) value = hn::Add(hn::LoadU(d, out + i), value);
    hn::StoreU(value, d, out + i);
  };
  for (std::size_t i = 0; i < count; i += 2 * lanes) {
    at(i);
    at(i + lanes);
  }
}

template <class Lanes, bool add, bool halves>
HWY_ATTR void decode_format(std::size_t block, const std::byte* in, std::span<float> out) {
  alignas(64) std::uint8_t codes[most_in_block];
  alignas(64) std::uint8_t last[most_in_block];
  alignas(64) float values[most_in_block];
  const std::byte* scales = in;
  const auto* payload = reinterpret_cast<const std::uint8_t*>(in) + block_scale_bytes(out.size(), block);
  const auto one = [&](const std::uint8_t* from, float scale, float* to, std::size_t count) HWY_ATTR {
    if constexpr (halves) unpack_codes(from, count, codes);
    decode_block<Lanes, add>(halves ? codes : from, scale, count, to);
  };
  for (std::size_t at = 0; at < out.size(); at += block) {
    const std::size_t count = std::min(block, out.size() - at);
    const std::size_t bytes = halves ? (count + 1) / 2 : count;
    float* to = out.data() + at;
    float scale = 0;
    std::memcpy(&scale, scales, sizeof scale);
    if (is_nan_scale(scale)) {
      std::fill_n(to, count, float_of(quiet_nan_bits));
    } else if (count % grain == 0) {
      one(payload, scale, to, count);
    } else {
      const std::size_t padded = (count + grain - 1) / grain * grain;
      std::memset(last, 0, padded);
      std::memcpy(last, payload, bytes);
      std::memset(values, 0, padded * sizeof(float));
      if constexpr (add) std::memcpy(values, to, count * sizeof(float));
      one(last, scale, values, padded);
      std::memcpy(to, values, count * sizeof(float));
    }
    scales += sizeof scale;
    payload += bytes;
  }
}

HWY_ATTR void decode_blocks_here(const BlockShape& shape, const std::byte* in, std::span<float> out,
                                 bool add) {
  const auto run = [&]<class Lanes, bool halves>() {
    if (add) return decode_format<Lanes, true, halves>(shape.block, in, out);
    decode_format<Lanes, false, halves>(shape.block, in, out);
  };
  switch (shape.format) {
    case BlockFormat::int8: return run.template operator()<WholeLanes, false>();
    case BlockFormat::int4: return run.template operator()<WholeLanes, true>();
    case BlockFormat::fp8: return run.template operator()<Float8Lanes, false>();
  }
}

}  // namespace tutti::compress::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tutti::compress {

HWY_EXPORT(encode_blocks_here);
HWY_EXPORT(decode_blocks_here);

std::size_t BlockShape::bytes(std::size_t count) const {
  return block_scale_bytes(count, block) + (format == BlockFormat::int4 ? (count + 1) / 2 : count);
}

void encode_blocks(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                   std::span<const float> in, float* residual, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(encode_blocks_here)(shape, draws, first, in, residual, out);
}

void decode_blocks(const BlockShape& shape, const std::byte* in, std::span<float> out, bool add) {
  HWY_DYNAMIC_DISPATCH(decode_blocks_here)(shape, in, out, add);
}

}  // namespace tutti::compress
#endif
