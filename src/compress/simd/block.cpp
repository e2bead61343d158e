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
#include "compress/simd/scales-inl.hpp"
#include "compress/simd/signs-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::HWY_NAMESPACE {

/// Vectors are taken four at a time; 64 values are whole fours on every instruction set here.
inline constexpr std::size_t grain = 64;
static_assert(grain % (4 * hn::MaxLanes(Floats())) == 0);

template <int bits>
constexpr std::size_t payload_bytes(std::size_t count) {
  return (count * bits + 7) / 8;
}

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

/// One block of whole grains. `codes`: a byte for each value. `draws`: null to round to nearest.
template <class Lanes, class Rounding, bool feedback, class Scale>
HWY_INLINE float encode_block(const Values<feedback>& values, const Scale& scales, float largest,
                              std::uint8_t* HWY_RESTRICT codes, const std::uint32_t* HWY_RESTRICT draws,
                              float* HWY_RESTRICT residual) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const BlockScale block = scales.of(values);
  if (is_nan_scale(block.scale)) {
    std::memset(codes, 0, values.padded);
    return block.scale;
  }
  const float* HWY_RESTRICT from = values.again();
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
  for (std::size_t i = 0; i < values.padded; i += 4 * lanes) {
    const W a = at(i);
    const W b = at(i + lanes);
    const W c = at(i + 2 * lanes);
    narrow.store(a, b, c, at(i + 3 * lanes), codes + i);
  }
  return block.scale;
}

/// One block of whole grains of onebit.
template <bool feedback>
HWY_INLINE float encode_signs(const Values<feedback>& values, std::uint8_t* HWY_RESTRICT payload,
                              float* HWY_RESTRICT residual) {
  const Floats d;
  const float size = MeanScale().of(values).scale;
  if (is_nan_scale(size)) {
    std::memset(payload, 0, values.padded / 8);
    return size;
  }
  const float* HWY_RESTRICT from = values.again();
  const F scale = hn::Set(d, size);
  store_signs(values.padded, payload, [&](std::size_t i) HWY_ATTR {
    const F value = hn::LoadU(d, from + i);
    if constexpr (feedback) hn::StoreU(hn::Sub(value, hn::CopySign(scale, value)), d, residual + i);
    return value;
  });
  return size;
}

/// One format, one rounding, one kind of scale, with or without feedback.
template <class Lanes, class Rounding, bool feedback, int bits, class Scale>
class Encoder {
 public:
  Encoder(const Draws& draws, float largest, const Scale& scale)
      : draws_(draws), largest_(largest), scale_(scale) {}

  HWY_ATTR void all(std::size_t block, std::uint64_t first, std::span<const float> in, float* residual,
                    std::byte* out) {
    auto* payload = reinterpret_cast<std::uint8_t*>(out) + block_scale_bytes(in.size(), block);
    std::byte* scales = out;
    for (std::size_t at = 0; at < in.size(); at += block) {
      const std::size_t count = std::min(block, in.size() - at);
      float* kept = feedback ? residual + at : nullptr;
      const float scale = count % grain == 0 ? one(first + at, in.data() + at, kept, count, count, payload)
                                             : last(first + at, in.data() + at, kept, count, payload);
      std::memcpy(scales, &scale, sizeof scale);
      scales += sizeof scale;
      payload += payload_bytes<bits>(count);
    }
    const std::size_t used = static_cast<std::size_t>(scales - out);
    std::memset(scales, 0, block_scale_bytes(in.size(), block) - used);
  }

 private:
  HWY_ATTR float one(std::uint64_t first, const float* in, float* residual, std::size_t padded,
                     std::size_t count, std::uint8_t* payload) {
    const Values<feedback> values{in, residual, scratch_.values, padded, count};
    if constexpr (bits == 1) {
      return encode_signs(values, payload, residual);
    } else {
      const std::size_t skipped = first % 4;
      if constexpr (Rounding::draws) fill_draws(draws_, first / 4, padded + skipped, scratch_.draws);
      std::uint8_t* codes = bits == 8 ? payload : scratch_.codes;
      const float scale =
          encode_block<Lanes, Rounding>(values, scale_, largest_, codes, scratch_.draws + skipped, residual);
      if constexpr (bits == 4) pack_codes(codes, padded, payload);
      if constexpr (bits == 2) pack_fours(codes, padded, payload);
      return scale;
    }
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
    const float scale = one(first, scratch_.last, feedback ? scratch_.last_residual : nullptr, padded, count,
                            scratch_.last_payload);
    if constexpr (feedback) std::memcpy(residual, scratch_.last_residual, count * sizeof(float));
    std::memcpy(payload, scratch_.last_payload, payload_bytes<bits>(count));
    return scale;
  }

  const Draws& draws_;
  float largest_;
  Scale scale_;
  Scratch scratch_;
};

/// What encode_blocks() is asked for.
struct Request {
  const BlockShape& shape;
  const Draws& draws;
  std::uint64_t first;
  std::span<const float> in;
  float* residual;
  std::byte* out;
};

template <class Lanes, class Rounding, int bits, class Scale>
HWY_ATTR void encode_rounded(const Request& asked, float largest, const Scale& scale) {
  const auto run = [&](auto encoder) {
    encoder.all(asked.shape.block, asked.first, asked.in, asked.residual, asked.out);
  };
  if (asked.residual != nullptr)
    run(Encoder<Lanes, Rounding, true, bits, Scale>(asked.draws, largest, scale));
  else
    run(Encoder<Lanes, Rounding, false, bits, Scale>(asked.draws, largest, scale));
}

/// A format that is scaled by the largest.
template <class Lanes, int bits>
HWY_ATTR void encode_format(const Request& asked, float largest) {
  if (asked.shape.stochastic)
    encode_rounded<Lanes, Stochastic, bits>(asked, largest, LargestScale{largest});
  else
    encode_rounded<Lanes, Nearest, bits>(asked, largest, LargestScale{largest});
}

HWY_ATTR void encode_ternary(const Request& asked) {
  constexpr float largest = WholeCode<1>::largest;
  if (asked.shape.stochastic)
    encode_rounded<WholeLanes, Stochastic, 2>(asked, largest, LargestScale{largest});
  else
    encode_rounded<WholeLanes, NearestLimited, 2>(asked, largest, TernaryScale());
}

HWY_ATTR void encode_blocks_here(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                                 std::span<const float> in, float* residual, std::byte* out) {
  const Request asked{shape, draws, first, in, residual, out};
  switch (shape.format) {
    case BlockFormat::int8: return encode_format<WholeLanes, 8>(asked, WholeCode<127>::largest);
    case BlockFormat::int4: return encode_format<WholeLanes, 4>(asked, WholeCode<7>::largest);
    case BlockFormat::fp8: return encode_format<Float8Lanes, 8>(asked, Float8Code::largest);
    case BlockFormat::ternary: return encode_ternary(asked);
    case BlockFormat::onebit: return encode_rounded<WholeLanes, Nearest, 1>(asked, 1.0F, MeanScale());
    case BlockFormat::qsgd8:
      return encode_rounded<WholeLanes, Stochastic, 8>(asked, WholeCode<127>::largest,
                                                       NormScale{WholeCode<127>::largest});
    case BlockFormat::qsgd4:
      return encode_rounded<WholeLanes, Stochastic, 4>(asked, WholeCode<7>::largest,
                                                       NormScale{WholeCode<7>::largest});
    case BlockFormat::terngrad:
      Encoder<WholeLanes, Stochastic, false, 2, GivenScale>(draws, WholeCode<1>::largest, {shape.given})
          .all(shape.block, first, in, nullptr, out);
  }
}

HWY_ATTR BlockScale clipped_scale_here(std::span<const float> in, float clip) {
  const std::size_t whole = in.size() / grain * grain;
  alignas(64) float rest[grain] = {};
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(), rest);
  const Values<false> most{in.data(), nullptr, nullptr, whole, whole};
  const Values<false> others{rest, nullptr, nullptr, grain, grain};
  const std::uint32_t largest = std::max(largest_of(most), largest_of(others));
  const BlockScale unit = block_scale(largest, 1.0F);
  if (is_nan_scale(unit.scale) || unit.scale == 0.0F) return unit;
  double squares = static_cast<double>(NormScale::squares(rest, grain, unit.reciprocal));
  for (std::size_t at = 0; at < whole; at += most_in_block) {
    const std::size_t count = std::min(most_in_block, whole - at);
    squares += static_cast<double>(NormScale::squares(in.data() + at, count, unit.reciprocal));
  }
  return clipped_to(unit, squares / static_cast<double>(in.size()), clip);
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

/// One block of whole grains of onebit.
template <bool add>
HWY_INLINE void decode_signs(const std::uint8_t* HWY_RESTRICT payload, float scale, std::size_t count,
                             float* HWY_RESTRICT out) {
  const Floats d;
  const F plus = hn::Set(d, scale);
  const F minus = hn::Neg(plus);
  load_signs(count, payload, [&](std::size_t i, auto negative) HWY_ATTR {
    F value = hn::IfThenElse(negative, minus, plus);
    if constexpr (add) value = hn::Add(hn::LoadU(d, out + i), value);
    hn::StoreU(value, d, out + i);
  });
}

template <class Lanes, bool add, int bits>
HWY_ATTR void decode_format(std::size_t block, const std::byte* in, std::span<float> out) {
  alignas(64) std::uint8_t codes[most_in_block];
  alignas(64) std::uint8_t last[most_in_block];
  alignas(64) float values[most_in_block];
  const std::byte* scales = in;
  const auto* payload = reinterpret_cast<const std::uint8_t*>(in) + block_scale_bytes(out.size(), block);
  const auto one = [&](const std::uint8_t* from, float scale, float* to, std::size_t count) HWY_ATTR {
    if constexpr (bits == 1) {
      decode_signs<add>(from, scale, count, to);
    } else {
      if constexpr (bits == 4) unpack_codes(from, count, codes);
      if constexpr (bits == 2) unpack_fours(from, count, codes);
      decode_block<Lanes, add>(bits == 8 ? from : codes, scale, count, to);
    }
  };
  for (std::size_t at = 0; at < out.size(); at += block) {
    const std::size_t count = std::min(block, out.size() - at);
    const std::size_t bytes = payload_bytes<bits>(count);
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
  const auto run = [&]<class Lanes, int bits>() {
    if (add) return decode_format<Lanes, true, bits>(shape.block, in, out);
    decode_format<Lanes, false, bits>(shape.block, in, out);
  };
  if (shape.format == BlockFormat::fp8) return run.template operator()<Float8Lanes, 8>();
  switch (bits_in(shape.format)) {
    case 1: return run.template operator()<WholeLanes, 1>();
    case 2: return run.template operator()<WholeLanes, 2>();
    case 4: return run.template operator()<WholeLanes, 4>();
    default: return run.template operator()<WholeLanes, 8>();
  }
}

}  // namespace tutti::compress::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tutti::compress {

HWY_EXPORT(encode_blocks_here);
HWY_EXPORT(decode_blocks_here);
HWY_EXPORT(clipped_scale_here);

std::size_t BlockShape::bytes(std::size_t count) const {
  return block_scale_bytes(count, block) + (count * bits_in(format) + 7) / 8;
}

void encode_blocks(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                   std::span<const float> in, float* residual, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(encode_blocks_here)(shape, draws, first, in, residual, out);
}

BlockScale clipped_scale(std::span<const float> in, float clip) {
  return HWY_DYNAMIC_DISPATCH(clipped_scale_here)(in, clip);
}

void decode_blocks(const BlockShape& shape, const std::byte* in, std::span<float> out, bool add) {
  HWY_DYNAMIC_DISPATCH(decode_blocks_here)(shape, in, out, add);
}

}  // namespace tutti::compress
#endif
