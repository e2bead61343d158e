// The loops over blocks against the functions that specify them, and those against what they should be.
#include "compress/arithmetic/block.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "compress/arithmetic/scales.hpp"
#include "compress/awkward.hpp"
#include "compress/codec.hpp"
#include "compress/simd/block.hpp"
#include "kernel/kernel.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::compress;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Message, residual and decoded values, by the specification alone.
struct Outcome {
  std::vector<std::uint8_t> bytes;
  std::vector<float> residual;
  std::vector<float> decoded;
};

/// The scale of a block of these sums.
BlockScale specify_scale(const BlockShape& shape, std::span<const float> sums, float levels) {
  std::uint32_t largest = 0;
  for (const float x : sums) largest = std::max(largest, bits_of(x) & magnitude_bits);
  const float factor = half_mean_factor(sums.size());
  OrderedSum half_mean;
  for (std::size_t i = 0; i < sums.size(); ++i) half_mean.add(i, std::abs(sums[i]) * factor);
  switch (shape.format) {
    case BlockFormat::terngrad: return shape.given;
    case BlockFormat::onebit: return {mean_scale(half_mean.total()), 0.0F};
    case BlockFormat::qsgd8:
    case BlockFormat::qsgd4: {
      const BlockScale unit = block_scale(largest, 1.0F);
      OrderedSum squares;
      for (std::size_t i = 0; i < sums.size(); ++i)
        squares.add(i, (sums[i] * unit.reciprocal) * (sums[i] * unit.reciprocal));
      return norm_scale(largest, squares.total(), levels);
    }
    default: break;
  }
  if (shape.format != BlockFormat::ternary || shape.stochastic) return block_scale(largest, levels);
  const float reciprocal = ternary_reciprocal(half_mean.total());
  if (is_nan_scale(reciprocal)) return {reciprocal, reciprocal};
  OrderedSum half;
  float above = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const bool sent = std::abs(sums[i] * reciprocal) > 0.5F;
    half.add(i, sent ? std::abs(sums[i]) * factor : 0.0F);
    above += sent ? 1.0F : 0.0F;
  }
  return {ternary_scale(half.total(), above, sums.size()), reciprocal};
}

template <class Code>
void specify_block(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                   std::span<const float> in, std::span<float> residual, bool feedback,
                   std::span<std::uint8_t> codes, std::span<float> decoded, float& scale) {
  std::vector<float> sums(in.begin(), in.end());
  for (std::size_t i = 0; feedback && i < in.size(); ++i) sums[i] = in[i] + residual[i];
  const BlockScale block = specify_scale(shape, sums, Code::largest);
  scale = block.scale;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (is_nan_scale(block.scale)) {
      codes[i] = 0;
      decoded[i] = nan_value;
      continue;
    }
    const float scaled = sums[i] * block.reciprocal;
    if (shape.format == BlockFormat::onebit) {
      codes[i] = static_cast<std::uint8_t>(bits_of(sums[i]) >> 31U);
      decoded[i] = signed_scale(block.scale, codes[i]);
    } else {
      codes[i] = shape.stochastic                       ? Code::stochastic(scaled, draws.of(first + i))
                 : shape.format == BlockFormat::ternary ? WholeCode<1>::limited(scaled)
                                                        : Code::nearest(scaled);
      decoded[i] = Code::value(codes[i]) * block.scale;
    }
    if (feedback) residual[i] = sums[i] - decoded[i];
  }
}

/// Packs a byte a value into what the format has.
void specify_payload(BlockFormat format, std::span<const std::uint8_t> codes, std::uint8_t* payload) {
  const std::size_t bits = bits_in(format);
  const auto code = [&](std::size_t i) { return i < codes.size() ? codes[i] : std::uint8_t{0}; };
  for (std::size_t at = 0; at < codes.size(); at += 8 / bits) {
    std::uint8_t& byte = payload[at * bits / 8];
    if (bits == 8) byte = codes[at];
    if (bits == 4) byte = pack_halves(code(at), code(at + 1));
    if (bits == 2) byte = pack_quarters(code(at), code(at + 1), code(at + 2), code(at + 3));
    for (std::size_t i = 0; bits == 1 && i < 8; ++i)
      byte = static_cast<std::uint8_t>(byte | code(at + i) << i);
  }
}

Outcome specify(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                const std::vector<float>& in, const std::vector<float>& residual, bool feedback) {
  const std::size_t count = in.size();
  Outcome outcome{std::vector<std::uint8_t>(shape.bytes(count)), residual, std::vector<float>(count)};
  std::vector<std::uint8_t> codes(count);
  for (std::size_t at = 0; at < count; at += shape.block) {
    const std::size_t length = std::min(shape.block, count - at);
    float scale = 0;
    const auto block = [&]<class Code>() {
      specify_block<Code>(shape, draws, first + at, std::span(in).subspan(at, length),
                          std::span(outcome.residual).subspan(at, length), feedback,
                          std::span(codes).subspan(at, length),
                          std::span(outcome.decoded).subspan(at, length), scale);
    };
    switch (shape.format) {
      case BlockFormat::int8:
      case BlockFormat::qsgd8: block.operator()<WholeCode<127>>(); break;
      case BlockFormat::int4:
      case BlockFormat::qsgd4: block.operator()<WholeCode<7>>(); break;
      case BlockFormat::fp8: block.operator()<Float8Code>(); break;
      case BlockFormat::ternary:
      case BlockFormat::terngrad:
      case BlockFormat::onebit: block.operator()<WholeCode<1>>(); break;
    }
    std::memcpy(outcome.bytes.data() + at / shape.block * sizeof scale, &scale, sizeof scale);
  }
  specify_payload(shape.format, codes, outcome.bytes.data() + block_scale_bytes(count, shape.block));
  return outcome;
}

bool same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

void check_against_specification(const BlockShape& shape, bool feedback, std::size_t count, std::size_t shift,
                                 std::uint64_t first) {
  const Draws draws{.seed = 0x123456789ABCULL, .step = 0x700000003ULL, .parameter = 5, .rank = 2};
  std::vector<float> in = awkward(count, shape.block, count % 8);
  if (shape.format == BlockFormat::terngrad)  // others have no scale that is a number
    std::ranges::replace_if(
        in, [](float x) { return !std::isfinite(x); }, 3.0F);
  std::vector<float> residual(count);
  base::Random random(7, 1);
  for (float& x : residual) x = static_cast<float>(0.1 * random.normal());
  const Outcome expected = specify(shape, draws, first, in, residual, feedback);
  std::vector<float> space(count + 32);
  std::copy(in.begin(), in.end(), space.begin() + static_cast<std::ptrdiff_t>(shift % 16));
  std::vector<float> kept(count + 32, 77.0F);
  std::copy(residual.begin(), residual.end(), kept.begin() + static_cast<std::ptrdiff_t>(shift % 16));
  const std::size_t bytes = shape.bytes(count);
  std::vector<std::byte> out(bytes + 128, std::byte{0xA5});
  encode_blocks(shape, draws, first, std::span(space).subspan(shift % 16, count),
                feedback ? kept.data() + shift % 16 : nullptr, out.data() + shift);
  CHECK(std::memcmp(out.data() + shift, expected.bytes.data(), bytes) == 0);
  CHECK(std::all_of(out.begin() + static_cast<std::ptrdiff_t>(shift + bytes), out.end(),
                    [](std::byte b) { return b == std::byte{0xA5}; }));
  if (feedback) CHECK(same(std::span(kept).subspan(shift % 16, count), expected.residual));
  CHECK(kept[shift % 16 + count] == 77.0F);

  std::vector<float> decoded(count + 32, 55.0F);
  decode_blocks(shape, out.data() + shift, std::span(decoded).subspan(shift % 16, count), false);
  CHECK(same(std::span(decoded).subspan(shift % 16, count), expected.decoded));
  CHECK(decoded[shift % 16 + count] == 55.0F);
  std::vector<float> sum = residual;
  std::vector<float> expected_sum = residual;
  for (std::size_t i = 0; i < count; ++i) expected_sum[i] += expected.decoded[i];
  decode_blocks(shape, out.data() + shift, sum, true);
  CHECK(same(sum, expected_sum));
}

struct Kind {
  BlockFormat format;
  bool stochastic;
};

/// All that there are.
std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const BlockFormat format :
       {BlockFormat::int8, BlockFormat::int4, BlockFormat::fp8, BlockFormat::ternary}) {
    all.push_back({format, false});
    all.push_back({format, true});
  }
  for (const BlockFormat format : {BlockFormat::qsgd8, BlockFormat::qsgd4, BlockFormat::terngrad})
    all.push_back({format, true});
  all.push_back({BlockFormat::onebit, false});
  return all;
}

}  // namespace

TEST_CASE("blocks: the loops equal the specification on every instruction set") {
  for (const std::string_view target : kernel::simd_targets()) {
    kernel::force_simd_target(target);
    for (const Kind& kind : kinds()) {
      for (const bool feedback : {false, true}) {
        if (feedback && kind.format == BlockFormat::terngrad) continue;
        INFO(target << ", format " << static_cast<int>(kind.format) << ", stochastic " << kind.stochastic
                    << ", feedback " << feedback);
        const auto shape = [&](std::size_t block) {
          return BlockShape{kind.format, block, kind.stochastic, block_scale(bits_of(0.7F), 1.0F)};
        };
        for (std::size_t count = 0; count <= 1025; count += count < 140 ? 1 : 59) {
          INFO(count << " elements");
          check_against_specification(shape(64), feedback, count, 0, 0);
        }
        for (std::size_t shift = 1; shift < 64; ++shift) {
          INFO("shift " << shift);
          check_against_specification(shape(64), feedback, 777, shift, 64 * 5 + shift);
        }
        check_against_specification(shape(256), feedback, 3001, 3, (1ULL << 34U) - 256);
        check_against_specification(shape(4096), feedback, 9 * 4096 + 65, 5, 3);
      }
    }
  }
  kernel::force_simd_target("");
}

TEST_CASE("fp8: all codes, and rounding at and beside every boundary") {
  std::vector<float> values;
  for (int code = 0; code < 0x7F; ++code) {
    const int exponent = code / 8;
    const int eighths = code % 8;
    const double expected = exponent == 0 ? std::ldexp(eighths, -9) : std::ldexp(8 + eighths, exponent - 10);
    values.push_back(Float8Code::value(static_cast<std::uint8_t>(code)));
    CHECK(static_cast<double>(values.back()) == expected);
    CHECK(Float8Code::value(static_cast<std::uint8_t>(code | 0x80)) == -values.back());
    CHECK(Float8Code::nearest(values.back()) == code);
    CHECK(Float8Code::nearest(-values.back()) == (code | 0x80));
    CHECK(Float8Code::stochastic(values.back(), ~0U) == code);
    CHECK(Float8Code::stochastic(values.back(), 0U) == code);
  }
  CHECK(values.back() == 448.0F);
  CHECK(std::isnan(Float8Code::value(0x7F)));
  CHECK(std::isnan(Float8Code::value(0xFF)));
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const float middle = (values[i] + values[i + 1]) / 2;
    const std::size_t even = i % 2 == 0 ? i : i + 1;
    CHECK(Float8Code::nearest(middle) == even);
    CHECK(Float8Code::nearest(-middle) == (even | 0x80));
    CHECK(Float8Code::nearest(std::nextafter(middle, 0.0F)) == i);
    CHECK(Float8Code::nearest(std::nextafter(middle, 1e9F)) == i + 1);
    CHECK(Float8Code::nearest(std::nextafter(values[i + 1], 0.0F)) == i + 1);
    CHECK(Float8Code::stochastic(middle, 0U) == i + 1);
    CHECK(Float8Code::stochastic(middle, 0x7FFFFFFFU) == i + 1);
    CHECK(Float8Code::stochastic(middle, 0x80000000U) == i);
  }
}

TEST_CASE("fp8: the loops decode every code and round at every boundary as the specification") {
  std::vector<float> in{448.0F};
  for (int code = 0; code < 0x7F; ++code) {
    const float value = Float8Code::value(static_cast<std::uint8_t>(code));
    const float next = Float8Code::value(static_cast<std::uint8_t>(std::min(code + 1, 0x7E)));
    const float middle = (value + next) / 2;
    for (const float x : {value, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 448.0F)}) {
      in.push_back(x);
      in.push_back(-x);
    }
  }
  const BlockShape shape{.format = BlockFormat::fp8, .block = 4096};
  const std::size_t scales = block_scale_bytes(1, shape.block);
  for (const std::string_view target : kernel::simd_targets()) {
    kernel::force_simd_target(target);
    INFO(target);
    std::vector<std::byte> out(shape.bytes(in.size()));
    encode_blocks(shape, {}, 0, in, nullptr, out.data());
    for (std::size_t i = 0; i < in.size(); ++i)
      CHECK(static_cast<std::uint8_t>(out[scales + i]) == Float8Code::nearest(in[i]));
    std::vector<std::byte> all(shape.bytes(256));
    const float one = 1;
    std::memcpy(all.data(), &one, sizeof one);
    for (std::size_t code = 0; code < 256; ++code) all[scales + code] = static_cast<std::byte>(code);
    std::vector<float> decoded(256);
    decode_blocks(shape, all.data(), decoded, false);
    for (std::size_t code = 0; code < 256; ++code)
      CHECK(bits_of(decoded[code]) == bits_of(Float8Code::value(static_cast<std::uint8_t>(code))));
  }
  kernel::force_simd_target("");
}

TEST_CASE("a block's scale keeps codes in reach and decoded values finite") {
  base::Random random(5, 2);
  for (const float codes : {127.0F, 7.0F, 448.0F}) {
    for (int i = 0; i < 20000; ++i) {
      const auto bits = static_cast<std::uint32_t>(random.below(infinity_bits - 1)) + 1;
      const BlockScale block = block_scale(i == 0 ? infinity_bits - 1 : i == 1 ? 1 : bits, codes);
      const float largest = float_of(i == 0 ? infinity_bits - 1 : i == 1 ? 1 : bits);
      const bool fine = std::isfinite(block.scale) && std::isfinite(block.reciprocal) && block.scale > 0 &&
                        largest * block.reciprocal < codes * (1 + 0x1p-21F) &&
                        std::isfinite(codes * block.scale);
      if (!fine) FAIL(codes << ", largest " << largest);
    }
  }
  CHECK(block_scale(0, 127).scale == 0.0F);
  CHECK(is_nan_scale(block_scale(infinity_bits, 127).scale));
}

TEST_CASE("stochastic rounding is right on average, and a lost block keeps its residual") {
  for (const std::string name :
       {"int8", "int4", "fp8", "ternary", "natural", "qsgd", "qsgd:bits=4", "terngrad:clip=1000000"}) {
    const bool stateless = name.starts_with("qsgd") || name.starts_with("terngrad");
    const auto codec = make_codec(stateless ? name : name + ":rounding=stochastic:feedback=off");
    State state(256);
    std::vector<float> in(256);
    base::Random random(3, 3);
    for (float& x : in) x = static_cast<float>(random.normal());
    std::vector<double> mean(256);
    std::vector<float> decoded(256);
    std::vector<std::byte> out(codec->max_bytes(256));
    constexpr int steps = 4000;
    Piece piece{.parameter = 1, .size = 256, .seed = 9};
    for (int step = 0; step < steps; ++step) {
      piece.step = static_cast<std::uint64_t>(step);
      codec->encode(piece, in, state, out);
      codec->decode(piece, out, decoded);
      for (std::size_t i = 0; i < 256; ++i) mean[i] += static_cast<double>(decoded[i]) / steps;
    }
    double worst = 0;
    for (std::size_t i = 0; i < 256; ++i)
      worst = std::max(worst, std::abs(mean[i] - static_cast<double>(in[i])));
    // Half a step of a code, over the root of the steps, five times: a step of int4 is about 0.4 here, of
    // qsgd:bits=4 a seventh of 16, of ternary the largest of all.
    INFO(name);
    const bool coarse = name == "ternary" || name.starts_with("terngrad") || name == "qsgd:bits=4";
    CHECK(worst < 5 * (coarse ? 1.6 : name == "natural" ? 0.6 : 0.25) / std::sqrt(steps));
    if (stateless) continue;

    const auto kept = make_codec(name + ":feedback=on");
    State memory(256);
    kept->encode(piece, in, memory, out);
    const std::vector<float> before(memory.array(residual_name).begin(), memory.array(residual_name).end());
    std::vector<float> bad(256, infinity);
    kept->encode(piece, bad, memory, out);
    CHECK(same(memory.array(residual_name), before));
  }
}

TEST_CASE("blocks that are no multiple of 64 are refused") {
  CHECK_THROWS_AS(make_codec("int8:block=100"), InvalidArgument);
  CHECK_THROWS_AS(make_codec("int8:block=32"), InvalidArgument);
  CHECK_THROWS_AS(make_codec("int8:block=8192"), InvalidArgument);
  CHECK(make_codec("int8:block=4096")->max_bytes(5000) == 16 + 5000);
  CHECK(make_codec("int4")->max_bytes(65) == 16 + 33);
  CHECK(make_codec("ternary")->max_bytes(65) == 16 + 17);
  CHECK(make_codec("onebit")->max_bytes(65) == 16 + 9);
  CHECK(make_codec("qsgd:bits=4")->max_bytes(513) == 16 + 257);
  CHECK_THROWS_AS(make_codec("qsgd:bits=5"), InvalidArgument);
}

TEST_CASE("ternary sends what exceeds 0.7 means as the mean of it; onebit all as the mean") {
  // Of 64 values 16 are 4, 16 are -2, the others 0.1: the mean is 1.55, 0.7 of it 1.085.
  std::vector<float> in(64, 0.1F);
  for (std::size_t i = 0; i < 16; ++i) {
    in[4 * i] = 4.0F;
    in[4 * i + 1] = -2.0F;
  }
  for (const std::string name : {"ternary", "onebit"}) {
    const auto codec = make_codec(name);
    State state(64);
    std::vector<std::byte> out(codec->max_bytes(64));
    std::vector<float> decoded(64);
    codec->encode({.size = 64}, in, state, out);
    codec->decode({.size = 64}, out, decoded);
    const auto residual = state.array(residual_name);
    for (std::size_t i = 0; i < 64; ++i) {
      const float sign = i % 4 == 1 ? -1.0F : 1.0F;
      const float expected = name == "onebit" ? sign * 1.55F : i % 4 < 2 ? sign * 3.0F : 0.0F;
      INFO(name << ", element " << i);
      CHECK_THAT(static_cast<double>(decoded[i]), WithinAbs(static_cast<double>(expected), 1e-5));
      CHECK(residual[i] == in[i] - decoded[i]);
    }
  }
}

TEST_CASE("terngrad clips to 2.5 deviations of the whole parameter, over all its blocks") {
  std::vector<float> in(10000);
  base::Random random(6, 4);
  double squares = 0;
  for (float& x : in) {
    x = static_cast<float>(random.normal());
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const double expected = 2.5 * std::sqrt(squares / static_cast<double>(in.size()));
  for (const std::string_view target : kernel::simd_targets()) {
    kernel::force_simd_target(target);
    CHECK_THAT(static_cast<double>(clipped_scale(in, 2.5F).scale), WithinRel(expected, 1e-5));
    CHECK(clipped_scale(in, 2.5F).scale == clipped_scale(std::vector<float>(in), 2.5F).scale);
    CHECK(clipped_scale(in, 1e6F).scale ==
          std::abs(*std::ranges::max_element(in, {}, [](float x) { return std::abs(x); })));
  }
  kernel::force_simd_target("");
  CHECK(clipped_scale(std::vector<float>(70), 2.5F).scale == 0.0F);
  CHECK(is_nan_scale(clipped_scale(std::vector<float>{1.0F, infinity}, 2.5F).scale));
}
