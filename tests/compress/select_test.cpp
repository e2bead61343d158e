#include "compress/simd/select.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "compress/arithmetic/dgc.hpp"
#include "compress/arithmetic/redsync.hpp"
#include "kernel/kernel.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::compress;

namespace {

/// All the kinds that there are: usual, equal, zeros of both signs, denormal, infinite, NaN.
std::vector<float> mixture(std::size_t count, std::uint64_t seed) {
  base::Random random(seed, 5);
  const std::array<float, 9> odd{0.0F,
                                 -0.0F,
                                 1.0F,
                                 -1.0F,
                                 std::numeric_limits<float>::denorm_min(),
                                 -1e-40F,
                                 std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> values(count);
  for (float& x : values) {
    x = static_cast<float>(random.normal());
    if (random.below(4) == 0) x = odd[random.below(odd.size())];
  }
  return values;
}

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  base::Random random(seed, 6);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(canonical(x)) == std::bit_cast<std::uint32_t>(canonical(y));
  });
}

template <class Check>
void on_every_target(const Check& check) {
  for (const std::string_view target : kernel::simd_targets()) {
    INFO(target);
    kernel::force_simd_target(target);
    check();
  }
  kernel::force_simd_target("");
}

const std::vector<std::size_t> lengths{0,  1,  2,  3,   7,   8,   15,  16,  17,   31,   32,   33,
                                       63, 64, 65, 100, 127, 128, 129, 511, 2047, 2049, 4096, 5000};

const std::vector<Cut> cut_kinds{
    {.threshold = least_key},
    {.threshold = key_of(1.0F)},
    {.threshold = infinity_key},
    {.threshold = key_of(0.5F), .side = Side::positive},
    {.threshold = key_of(0.5F), .side = Side::negative},
    {.threshold = least_key, .side = Side::negative},
    {.threshold = infinity_key, .side = Side::positive},
};

std::vector<std::uint32_t> passing(const std::vector<float>& values, Cut cut) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (passes(values[i], cut)) found.push_back(i);
  }
  return found;
}

}  // namespace

TEST_CASE("finding equals the scalar rule at every length, address and instruction set") {
  on_every_target([] {
    for (const std::size_t count : lengths) {
      for (const std::size_t shift : {0UL, 1UL, 5UL}) {
        std::vector<float> values = mixture(count + shift, count);
        const std::vector<float> in = mixture(count, count + 1);
        std::vector<float> expected(values.begin() + static_cast<std::ptrdiff_t>(shift), values.end());
        for (const Cut cut : cut_kinds) {
          std::vector<std::uint32_t> found(count);
          found.resize(simd::find(values.data() + shift, count, cut, found.data()));
          CHECK(found == passing(expected, cut));
          std::vector<float> sums = values;
          std::vector<float> expected_sums = expected;
          for (std::size_t i = 0; i < count; ++i) expected_sums[i] = in[i] + expected_sums[i];
          found.resize(count);
          found.resize(simd::add_and_find(in.data(), sums.data() + shift, count, cut, found.data()));
          CHECK(found == passing(expected_sums, cut));
          sums.erase(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(shift));
          CHECK(same(sums, expected_sums));
        }
      }
    }
  });
}

TEST_CASE("momentum rounds both products and their sum on every instruction set") {
  on_every_target([] {
    for (const std::size_t count : lengths) {
      const std::vector<float> in = mixture(count, 3);
      std::vector<float> momentum = numbers(count, 4);
      std::vector<float> values = numbers(count, 5);
      std::vector<float> expected_momentum = momentum;
      std::vector<float> expected = values;
      for (std::size_t i = 0; i < count; ++i) {
        expected_momentum[i] = dgc_momentum(expected_momentum[i], in[i], 0.9F, 0.7F);
        expected[i] += expected_momentum[i];
      }
      const Cut cut{.threshold = key_of(1.5F)};
      std::vector<std::uint32_t> found(count);
      found.resize(simd::momentum_and_find(in.data(),
                                           {.beta = 0.9F, .scale = 0.7F, .momentum = momentum.data()},
                                           values.data(), count, cut, found.data()));
      CHECK(same(momentum, expected_momentum));
      CHECK(same(values, expected));
      CHECK(found == passing(expected, cut));
    }
  });
}

TEST_CASE("sums, maxima and counts are the same on every instruction set") {
  for (const std::size_t count : lengths) {
    const std::vector<float> in = numbers(count, 7);
    const std::vector<float> before = numbers(count, 8);
    std::array<float, 16> sums{};
    Key largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sums[i % 16] += std::abs(in[i] + before[i]);
      largest = std::max(largest, key_of(in[i] + before[i]));
    }
    for (std::size_t half = 8; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    const std::vector<float> mixed = mixture(count, 9);
    on_every_target([&] {
      simd::Extent extent{.sum = 1, .largest = 2};
      std::vector<float> values = before;
      simd::add_and_measure(in.data(), values.data(), count, extent);
      CHECK(extent.sum == 1 + static_cast<double>(sums[0]));
      CHECK(extent.largest == std::max<Key>(largest, 2));
      const std::array<Key, simd::cuts> thresholds{1,
                                                   key_of(1e-39F),
                                                   key_of(0.1F),
                                                   key_of(1.0F),
                                                   key_of(1.0F) + 1,
                                                   key_of(2.0F),
                                                   infinity_key,
                                                   infinity_key};
      for (const Side side : {Side::both, Side::positive, Side::negative}) {
        std::array<std::uint64_t, simd::cuts> counts{};
        counts[0] = 10;
        simd::count_passing(mixed.data(), count, thresholds, side, counts);
        for (std::size_t cut = 0; cut < simd::cuts; ++cut)
          CHECK(counts[cut] ==
                passing(mixed, {.threshold = thresholds[cut], .side = side}).size() + (cut == 0 ? 10 : 0));
      }
    });
  }
}

TEST_CASE("rules for one value") {
  CHECK(entries_of(0.01, 0) == 0);
  CHECK(entries_of(0.01, 1) == 1);
  CHECK(entries_of(0.01, 101) == 2);
  CHECK(entries_of(0.07, 100) == 7);
  CHECK(entries_of(1, 12345) == 12345);
  CHECK(from_bfloat16(to_bfloat16(1.0F)) == 1.0F);
  CHECK(to_bfloat16(std::bit_cast<float>(0x3F808000U)) == 0x3F80);  // half way, to even
  CHECK(to_bfloat16(std::bit_cast<float>(0x3F818000U)) == 0x3F82);
  CHECK(to_bfloat16(std::bit_cast<float>(0x7F800001U)) == 0x7FC0);
  CHECK(left_of(std::numeric_limits<float>::infinity(), 1.0F) == 0.0F);
  CHECK(left_of(3.0F, 1.0F) == 2.0F);
  for (const std::uint64_t count : {1ULL, 5ULL, 1000ULL, 123457ULL}) {
    for (const std::uint64_t wanted : {1ULL, 7ULL, 100ULL, 5000ULL}) {
      const Sampling sampling = sample(count, wanted, 0xDEADBEEFU);
      CHECK(sampling.stride % 2 == 1);
      CHECK(sampling.size(count) + 1 >= std::min(count, wanted));
    }
    for (const std::uint64_t entries : std::array{std::uint64_t{1}, std::uint64_t{2}, count / 3 + 1, count}) {
      if (entries > count) continue;
      std::uint64_t next = 0;
      for (std::uint64_t entry = 0; entry < entries; ++entry) {
        const Run run = run_of(entry, entries, count);
        CHECK(run.first == next);
        CHECK(run.drawn(0) == run.first);
        CHECK(run.drawn(0xFFFFFFFFU) == run.first + run.size - 1);
        next += run.size;
      }
      CHECK(next == count);
    }
  }
}

TEST_CASE("what Deep Gradient Compression and RedSync do to numbers") {
  CHECK(dgc_density(0.001, 0, 0) == 0.001);
  CHECK(dgc_density(0.001, 0, 100) == 0.25);
  CHECK(dgc_density(0.001, 25, 100) == 0.063);
  CHECK(dgc_density(0.001, 50, 100) == 0.015);
  CHECK(dgc_density(0.001, 99, 100) == 0.004);
  CHECK(dgc_density(0.001, 100, 100) == 0.001);
  CHECK(dgc_density(0.1, 99, 100) == 0.1);
  CHECK(dgc_scale(10, 0, 4) == 1.0F);
  CHECK(dgc_scale(10, 2, 4) == 0.1F);
  CHECK(dgc_scale(0.5, 2, 4) == 1.0F);
  CHECK(dgc_scale(std::numeric_limits<double>::quiet_NaN(), 2, 4) == 1.0F);
  CHECK(dgc_lower(key_of(1.0F)) == key_of(0.8F));
  CHECK(dgc_lower(least_key) == least_key);
  const std::vector<float> ten(10, 3.0F);
  CHECK(sum_of_squares(ten.data(), ten.size()) == 90.0);
  const auto trimmed = trimmed_thresholds(1.0, key_of(11.0F));
  CHECK(trimmed[0] == key_of(9.0F));
  CHECK(trimmed[4] == key_of(1.0F));
  CHECK(trimmed[5] == least_key);
  const auto inner = inner_thresholds({.low = 10, .high = 19});
  CHECK(inner[0] == 11);
  CHECK(inner[7] == 18);
}
