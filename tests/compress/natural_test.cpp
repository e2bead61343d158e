// The loops of natural compression against the function that specifies it, and that against what it should
// be.
#include "compress/arithmetic/natural.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "compress/simd/natural.hpp"
#include "kernel/kernel.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::compress;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Any bits at all: all sizes, denormals, infinities, NaN.
std::vector<float> any(std::size_t count, std::uint64_t seed) {
  base::Random random(seed, 4);
  std::vector<float> values(count);
  for (float& x : values) x = float_of(static_cast<std::uint32_t>(random.below(1ULL << 32U)));
  return values;
}

void check(const Draws* draws, bool feedback, std::size_t count, std::size_t shift, std::uint64_t first) {
  const std::vector<float> in = any(count + shift, count);
  std::vector<float> residual(count + shift + 1, 0.0F);
  base::Random random(7, 2);
  for (float& x : residual) x = static_cast<float>(0.1 * random.normal());
  const std::vector<float> before = residual;
  std::vector<std::uint8_t> codes(count + 64, 0xA5);
  encode_natural(draws, first, std::span(in).subspan(shift), feedback ? residual.data() + shift : nullptr,
                 codes.data() + shift);
  std::vector<float> decoded(count + shift + 1, 55.0F);
  decode_natural(codes.data() + shift, std::span(decoded).subspan(shift, count), false);
  std::vector<float> sums = before;
  decode_natural(codes.data() + shift, std::span(sums).subspan(shift, count), true);
  bool same = codes[count + shift] == 0xA5 && decoded[count + shift] == 55.0F;
  for (std::size_t i = shift; i < count + shift; ++i) {
    const float value = feedback ? in[i] + before[i] : in[i];
    const std::uint8_t code = draws != nullptr ? NaturalCode::stochastic(value, draws->of(first + i - shift))
                                               : NaturalCode::nearest(value);
    const float means = NaturalCode::value(code);
    const float left = !feedback || !std::isfinite(value) ? before[i] : value - means;
    same = same && codes[i] == code && bits_of(decoded[i]) == bits_of(means) &&
           bits_of(residual[i]) == bits_of(left) && bits_of(sums[i]) == bits_of(before[i] + means);
  }
  CHECK(same);
}

}  // namespace

TEST_CASE("natural: the loops equal the specification on every instruction set") {
  const Draws draws{.seed = 5, .step = 8, .parameter = 2, .rank = 3};
  for (const std::string_view target : kernel::simd_targets()) {
    kernel::force_simd_target(target);
    for (const Draws* drawn : {static_cast<const Draws*>(nullptr), &draws}) {
      for (const bool feedback : {false, true}) {
        INFO(target << ", stochastic " << (drawn != nullptr) << ", feedback " << feedback);
        for (std::size_t count = 0; count < 200; ++count) check(drawn, feedback, count, count % 7, count);
        check(drawn, feedback, 100003, 1, 3);
      }
    }
  }
  kernel::force_simd_target("");
}

TEST_CASE("natural: every code is the power of two it should be, and the nearest is taken") {
  CHECK(NaturalCode::nearest(0.0F) == 0);
  CHECK(NaturalCode::nearest(-0.0F) == 0);
  CHECK(NaturalCode::value(0x80) == 0.0F);
  for (int code = 1; code <= 126; ++code) {
    const float power = std::ldexp(1.0F, code - 64);
    const auto byte = static_cast<std::uint8_t>(code);
    CHECK(NaturalCode::value(byte) == power);
    CHECK(NaturalCode::value(static_cast<std::uint8_t>(code | 0x80)) == -power);
    for (const float x : {power, std::nextafter(1.5F * power, 0.0F), std::nextafter(power, 0.0F)}) {
      CHECK(NaturalCode::nearest(x) == byte);
      CHECK(NaturalCode::nearest(-x) == (byte | 0x80));
    }
    CHECK(NaturalCode::nearest(1.5F * power) == std::min(code + 1, 126));
    CHECK(NaturalCode::stochastic(power, ~0U) == byte);
    CHECK(NaturalCode::stochastic(power, 0U) == byte);
    // A quarter above the power: up in a quarter of all draws.
    CHECK(NaturalCode::stochastic(1.25F * power, 0xBFFFFFFFU) == byte);
    CHECK(NaturalCode::stochastic(1.25F * power, 0xC0000000U) == std::min(code + 1, 126));
  }
  CHECK(NaturalCode::nearest(std::numeric_limits<float>::max()) == 126);
  CHECK(NaturalCode::nearest(-infinity) == 255);
  CHECK(std::isnan(NaturalCode::value(127)));
  CHECK(std::isnan(NaturalCode::value(255)));
  // Below the least power: a quarter of it is sent as that in a quarter of all draws.
  CHECK(NaturalCode::nearest(0x1p-64F) == 1);
  CHECK(NaturalCode::nearest(std::nextafter(0x1p-64F, 0.0F)) == 0);
  CHECK(NaturalCode::stochastic(0x1p-65F, 0x3FFFFFFFU) == 1);
  CHECK(NaturalCode::stochastic(0x1p-65F, 0x40000000U) == 0);
}
