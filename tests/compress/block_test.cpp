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
#include "compress/codec.hpp"
#include "compress/simd/block.hpp"
#include "kernel/kernel.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::compress;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Message, residual and decoded values, by the specification alone.
struct Outcome {
  std::vector<std::uint8_t> bytes;
  std::vector<float> residual;
  std::vector<float> decoded;
};

template <class Code>
void specify_block(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                   std::span<const float> in, std::span<float> residual, bool feedback,
                   std::span<std::uint8_t> codes, std::span<float> decoded, float& scale) {
  std::vector<float> sums(in.begin(), in.end());
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (feedback) sums[i] = in[i] + residual[i];
    largest = std::max(largest, bits_of(sums[i]) & magnitude_bits);
  }
  const BlockScale block = block_scale(largest, Code::largest);
  scale = block.scale;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (is_nan_scale(block.scale)) {
      codes[i] = 0;
      decoded[i] = nan_value;
      continue;
    }
    const float scaled = sums[i] * block.reciprocal;
    codes[i] = shape.stochastic ? Code::stochastic(scaled, draws.of(first + i)) : Code::nearest(scaled);
    decoded[i] = Code::value(codes[i]) * block.scale;
    if (feedback) residual[i] = sums[i] - decoded[i];
  }
}

Outcome specify(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                const std::vector<float>& in, const std::vector<float>& residual, bool feedback) {
  const std::size_t count = in.size();
  Outcome outcome{std::vector<std::uint8_t>(shape.bytes(count)), residual, std::vector<float>(count)};
  std::vector<std::uint8_t> codes(count + 1);
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
      case BlockFormat::int8: block.operator()<WholeCode<127>>(); break;
      case BlockFormat::int4: block.operator()<WholeCode<7>>(); break;
      case BlockFormat::fp8: block.operator()<Float8Code>(); break;
    }
    std::memcpy(outcome.bytes.data() + at / shape.block * sizeof scale, &scale, sizeof scale);
  }
  std::uint8_t* payload = outcome.bytes.data() + block_scale_bytes(count, shape.block);
  for (std::size_t i = 0; i < count; ++i) {
    if (shape.format != BlockFormat::int4)
      payload[i] = codes[i];
    else if (i % 2 == 0)
      payload[i / 2] = pack_halves(codes[i], i + 1 < count ? codes[i + 1] : std::uint8_t{0});
  }
  return outcome;
}

bool same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Blocks of all kinds in turn: usual ones, wide ranges, zeros, denormals, the largest of all, NaN, infinity.
std::vector<float> awkward(std::size_t count, std::size_t block, std::uint64_t seed) {
  base::Random random(seed, 9);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double normal = random.normal();
    switch ((i / block + seed) % 8) {
      case 0: values[i] = static_cast<float>(normal); break;
      case 1: values[i] = static_cast<float>(normal * std::exp(6 * random.normal())); break;
      case 2: values[i] = i % 2 == 0 ? 0.0F : -0.0F; break;
      case 3: values[i] = static_cast<float>(normal * 1e-40); break;
      case 4: values[i] = static_cast<float>(normal * 1e-37); break;
      case 5: values[i] = std::numeric_limits<float>::max() * (i % 3 == 0 ? -1.0F : 0.3F); break;
      case 6: values[i] = i % 19 == 7 ? -std::abs(nan_value) : static_cast<float>(normal); break;
      default: values[i] = i % 23 == 5 ? -infinity : static_cast<float>(normal); break;
    }
  }
  return values;
}

void check_against_specification(const BlockShape& shape, bool feedback, std::size_t count, std::size_t shift,
                                 std::uint64_t first) {
  const Draws draws{.seed = 0x123456789ABCULL, .step = 0x700000003ULL, .parameter = 5, .rank = 2};
  const std::vector<float> in = awkward(count, shape.block, count % 8);
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

}  // namespace

TEST_CASE("blocks: the loops equal the specification on every instruction set") {
  for (const std::string_view target : kernel::simd_targets()) {
    kernel::force_simd_target(target);
    for (const BlockFormat format : {BlockFormat::int8, BlockFormat::int4, BlockFormat::fp8}) {
      for (const bool stochastic : {false, true}) {
        for (const bool feedback : {false, true}) {
          INFO(target << ", format " << static_cast<int>(format) << ", stochastic " << stochastic
                      << ", feedback " << feedback);
          const BlockShape shape{.format = format, .block = 64, .stochastic = stochastic};
          for (std::size_t count = 0; count <= 1025; count += count < 140 ? 1 : 59) {
            INFO(count << " elements");
            check_against_specification(shape, feedback, count, 0, 0);
          }
          for (std::size_t shift = 1; shift < 64; ++shift) {
            INFO("shift " << shift);
            check_against_specification(shape, feedback, 777, shift, 64 * 5 + shift);
          }
          check_against_specification({format, 256, stochastic}, feedback, 3001, 3, (1ULL << 34U) - 256);
          check_against_specification({format, 4096, stochastic}, feedback, 9 * 4096 + 65, 5, 3);
        }
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
  for (const std::string name : {"int8", "int4", "fp8"}) {
    const auto codec = make_codec(name + ":rounding=stochastic:feedback=off");
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
    // A step of int4 is about 0.4 here; half of it, over the root of the steps, five times.
    INFO(name);
    CHECK(worst < 5 * 0.25 / std::sqrt(steps));

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
}
