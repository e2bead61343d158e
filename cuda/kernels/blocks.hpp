#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/arithmetic/block.hpp"
#include "compress/arithmetic/format.hpp"
#include "compress/arithmetic/philox.hpp"
#include "compress/arithmetic/scales.hpp"
#include "cuda/kernels/codes.hpp"
#include "cuda/kernels/cta.hpp"
#include "cuda/kernels/messages.hpp"
#include "cuda/kernels/warp.hpp"

/// Codecs that scale by block, as compress/simd/block.hpp has them on the CPU: the same bits, one warp a
/// block. Messages start at multiples of 16 bytes; values anywhere, faster at such multiples.
namespace tutti::cuda {

/// What is encoded: values in memory.
struct MemorySource {
  const float* values;

  template <compress::BlockFormat format>
  TUTTI_DEVICE Four load(std::uint64_t /*count*/, std::uint32_t /*block*/, std::uint64_t at,
                         unsigned valid) const {
    return load_four(values + at, valid);
  }
};

/// What is encoded: the sum of what all ranks have sent, as the owner of a slice makes it. It never gets to
/// memory.
struct MessageSource {
  Messages messages;

  template <compress::BlockFormat format>
  TUTTI_DEVICE Four load(std::uint64_t count, std::uint32_t block, std::uint64_t at, unsigned valid) const {
    Four sum = decode_four<format>(messages.of[0], count, block, at, valid);
    for (unsigned peer = 1; peer < messages.count; ++peer) {
      const Four other = decode_four<format>(messages.of[peer], count, block, at, valid);
      for (unsigned j = 0; j < 4; ++j) sum.v[j] += other.v[j];
    }
    return sum;
  }
};

/// One block of `count` values while a warp encodes it. The first two rounds of 128 stay in registers (as
/// members: an array that a loop goes through would be in memory); those after them are read again.
template <compress::BlockFormat format, class Args>
class WarpValues {
 public:
  template <class Cta>
  TUTTI_DEVICE WarpValues(Cta& cta, const Args& args, std::uint64_t at, std::uint32_t count)
      : args_(args),
        at_(at + 4 * cta.lane()),
        count_(count),
        mine_(4 * cta.lane()),
        rounds_((count + warp_elements - 1) / warp_elements) {
    if (rounds_ > 0) first_ = load(0);
    if (rounds_ > 1) second_ = load(1);
  }

  /// Calls visit(round, values) for every round, all lanes for the same ones. Values behind the end are
  /// zeros.
  template <class Visit>
  TUTTI_DEVICE void each(const Visit& visit) const {
    if (rounds_ > 0) visit(0U, first_);
    if (rounds_ > 1) visit(1U, second_);
    for (unsigned k = 2; k < rounds_; ++k) visit(k, load(k));
  }

  TUTTI_DEVICE unsigned valid(unsigned round) const {
    return valid_of(count_, mine_ + std::uint64_t{round} * warp_elements);
  }

  /// The number of this lane's first value of a round, among all that are encoded.
  TUTTI_DEVICE std::uint64_t place(unsigned round) const {
    return at_ + std::uint64_t{round} * warp_elements;
  }

  TUTTI_DEVICE std::uint32_t count() const { return count_; }

 private:
  TUTTI_DEVICE Four load(unsigned round) const {
    const unsigned n = valid(round);
    Four four = args_.source.template load<format>(args_.count, args_.block, place(round), n);
    if (args_.residual == nullptr) return four;
    const Four kept = load_four(args_.residual + place(round), n);
    for (unsigned j = 0; j < 4; ++j) four.v[j] += kept.v[j];
    return four;
  }

  const Args& args_;
  std::uint64_t at_;
  std::uint32_t count_;
  std::uint32_t mine_;
  unsigned rounds_;
  Four first_{};
  Four second_{};
};

TUTTI_DEVICE inline float magnitude(float value) {
  return compress::float_of(compress::bits_of(value) & compress::magnitude_bits);
}

template <class Cta, class Values>
TUTTI_DEVICE std::uint32_t largest_of(Cta& cta, const Values& values) {
  std::uint32_t largest = 0;
  values.each([&](unsigned, const Four& four) {
    for (const float value : four.v) {
      const std::uint32_t bits = compress::bits_of(value) & compress::magnitude_bits;
      largest = largest < bits ? bits : largest;
    }
  });
  return warp_max(cta, largest);
}

/// The sum of what `term` makes of every value, in the order that the format lays down.
template <class Cta, class Values, class Term>
TUTTI_DEVICE float ordered_sum(Cta& cta, const Values& values, const Term& term) {
  WarpOrderedSum sum;
  values.each([&](unsigned, const Four& four) {
    Four terms{};
    for (unsigned j = 0; j < 4; ++j) terms.v[j] = term(four.v[j]);
    sum.add(cta, terms);
  });
  return sum.total(cta);
}

template <class Cta, class Values>
TUTTI_DEVICE compress::BlockScale nearest_ternary_scale(Cta& cta, const Values& values, float half_mean,
                                                        float factor) {
  const float reciprocal = compress::ternary_reciprocal(half_mean);
  if (compress::is_nan_scale(reciprocal)) return {reciprocal, reciprocal};
  const auto is_sent = [&](float value) { return magnitude(value * reciprocal) > 0.5F; };
  std::uint32_t sent = 0;
  values.each([&](unsigned, const Four& four) {
    for (const float value : four.v) sent += is_sent(value) ? 1U : 0U;
  });
  const float half = ordered_sum(
      cta, values, [&](float value) { return is_sent(value) ? magnitude(value) * factor : 0.0F; });
  const auto above = static_cast<float>(warp_sum(cta, sent));
  return {compress::ternary_scale(half, above, values.count()), reciprocal};
}

/// The same on all lanes.
template <compress::BlockFormat format, class Cta, class Args, class Values>
TUTTI_DEVICE compress::BlockScale scale_of(Cta& cta, const Args& args, const Values& values) {
  using compress::BlockFormat;
  constexpr float levels = CodeOf<format>::type::largest;
  if constexpr (format == BlockFormat::terngrad) return args.given;
  if constexpr (format == BlockFormat::onebit || format == BlockFormat::ternary) {
    if (format == BlockFormat::onebit || !args.stochastic) {
      const float factor = compress::half_mean_factor(values.count());
      const float half_mean =
          ordered_sum(cta, values, [&](float value) { return magnitude(value) * factor; });
      if constexpr (format == BlockFormat::onebit) return {compress::mean_scale(half_mean), 0.0F};
      return nearest_ternary_scale(cta, values, half_mean, factor);
    }
  }
  const std::uint32_t largest = largest_of(cta, values);
  if constexpr (format == BlockFormat::qsgd8 || format == BlockFormat::qsgd4) {
    const float unit = compress::block_scale(largest, 1.0F).reciprocal;
    const float squares =
        ordered_sum(cta, values, [&](float value) { return (value * unit) * (value * unit); });
    return compress::norm_scale(largest, squares, levels);
  }
  return compress::block_scale(largest, levels);
}

/// Encodes `count` values of a source, plus what was not sent of them before, and keeps what is not sent now:
/// compress::encode_blocks().
template <compress::BlockFormat format, class Source>
struct EncodeBlocks {
  static constexpr unsigned threads = 256;

  struct Args {
    Source source;
    float* residual;  ///< null: none
    std::byte* out;
    std::uint64_t count;
    std::uint64_t first;  ///< the number of the first value in its parameter, for the draws
    std::uint32_t block;
    bool stochastic;  ///< of int8, int4, fp8, ternary
    compress::Draws draws;
    compress::BlockScale given;  ///< of terngrad
  };

  struct Shared {};

  /// Blocks of threads that give every block of values a warp.
  static std::uint64_t blocks_for(const Args& args) {
    constexpr std::uint64_t warps = threads / warp_lanes;
    return ((args.count + args.block - 1) / args.block + warps - 1) / warps;
  }

  template <class Cta>
  TUTTI_DEVICE static void run(Cta& cta, Shared& /*shared*/, const Args& args) {
    constexpr std::uint64_t warps = threads / warp_lanes;
    const std::uint64_t blocks = (args.count + args.block - 1) / args.block;
    for (std::uint64_t b = cta.block() * warps + cta.warp(); b < blocks; b += cta.blocks() * warps)
      encode_block(cta, args, b, b + 1 == blocks);
  }

 private:
  static constexpr unsigned bits = compress::bits_in(format);

  template <class Cta>
  TUTTI_DEVICE static void encode_block(Cta& cta, const Args& args, std::uint64_t b, bool is_last) {
    const std::uint64_t at = b * args.block;
    const auto count =
        static_cast<std::uint32_t>(args.count - at < args.block ? args.count - at : args.block);
    const WarpValues<format, Args> values(cta, args, at, count);
    const compress::BlockScale scale = scale_of<format>(cta, args, values);
    std::byte* payload = args.out + compress::block_scale_bytes(args.count, args.block);
    if (cta.lane() == 0) {
      auto* scales = reinterpret_cast<float*>(args.out) + b;
      *scales = scale.scale;
      // Zeros up to the payload.
      if (is_last) {
        for (float* pad = scales + 1; reinterpret_cast<std::byte*>(pad) < payload; ++pad) *pad = 0.0F;
      }
    }
    values.each([&](unsigned round, const Four& four) {
      const unsigned valid = values.valid(round);
      const std::uint64_t place = values.place(round);
      std::uint32_t packed = 0;
      if (!compress::is_nan_scale(scale.scale)) {
        packed = codes_of(args, four, scale, args.first + place);
        if (args.residual != nullptr) keep(args.residual + place, four, packed, scale.scale, valid);
      }
      store_codes<bits>(cta, payload, place, packed, valid);
    });
  }

  TUTTI_DEVICE static std::uint32_t codes_of(const Args& args, const Four& four,
                                             const compress::BlockScale& scale, std::uint64_t first) {
    using Code = typename CodeOf<format>::type;
    using compress::BlockFormat;
    constexpr bool always =
        format == BlockFormat::qsgd8 || format == BlockFormat::qsgd4 || format == BlockFormat::terngrad;
    std::uint8_t code[4];
    if constexpr (format == BlockFormat::onebit) {
      for (unsigned j = 0; j < 4; ++j)
        code[j] = static_cast<std::uint8_t>(compress::bits_of(four.v[j]) >> 31U);
    } else if (always || args.stochastic) {
      std::uint32_t draw[4];
      draw_four(args.draws, first, draw);
      for (unsigned j = 0; j < 4; ++j) code[j] = Code::stochastic(four.v[j] * scale.reciprocal, draw[j]);
    } else {
      for (unsigned j = 0; j < 4; ++j) {
        const float scaled = four.v[j] * scale.reciprocal;
        if constexpr (format == BlockFormat::ternary)
          code[j] = Code::limited(scaled);
        else
          code[j] = Code::nearest(scaled);
      }
    }
    return pack_four<bits>(code);
  }

  /// What a receiver does not get.
  TUTTI_DEVICE static void keep(float* residual, const Four& four, std::uint32_t packed, float scale,
                                unsigned valid) {
    Four left{};
    for (unsigned j = 0; j < 4; ++j) left.v[j] = four.v[j] - decode_one<format>(packed, j, scale);
    store_four(residual, left, valid);
  }
};

/// out = or += the messages of all ranks, added in their order: compress::decode_blocks().
template <compress::BlockFormat format>
struct DecodeBlocks {
  static constexpr unsigned threads = 256;

  struct Args {
    Messages messages;
    float* out;
    std::uint64_t count;
    std::uint32_t block;
    bool add;
  };

  struct Shared {};

  static std::uint64_t blocks_for(const Args& args) { return blocks_of_fours(args.count, threads); }

  template <class Cta>
  TUTTI_DEVICE static void run(Cta& cta, Shared& /*shared*/, const Args& args) {
    each_four(cta, threads, args.count, [&](std::uint64_t at, unsigned valid) {
      Four sum = args.add ? load_four(args.out + at, valid) : Four{};
      for (unsigned peer = 0; peer < args.messages.count; ++peer) {
        const Four four = decode_four<format>(args.messages.of[peer], args.count, args.block, at, valid);
        for (unsigned j = 0; j < 4; ++j) sum.v[j] = peer == 0 && !args.add ? four.v[j] : sum.v[j] + four.v[j];
      }
      store_four(args.out + at, sum, valid);
    });
  }
};

}  // namespace tutti::cuda
