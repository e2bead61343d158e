#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "compress/arithmetic/lowrank.hpp"
#include "compress/codec.hpp"
#include "compress/simd/lowrank.hpp"
#include "kernel/kernel.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::compress;

namespace {

std::vector<float> normal(std::size_t count, std::uint64_t seed) {
  base::Random random(seed, 9);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

bool same(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

double energy(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * static_cast<double>(x);
  return sum;
}

/// Ranks that send a matrix to each other as exchange does.
struct Group {
  Group(std::size_t ranks, std::size_t rows_of, std::size_t columns_of, const std::string& text = "powersgd")
      : codec(make_codec(text)),
        linear(dynamic_cast<LinearCodec&>(*codec)),
        rows(rows_of),
        columns(columns_of) {
    for (std::size_t r = 0; r < ranks; ++r) states.emplace_back(rows * columns);
  }

  /// The sum that all ranks get; checks that they get the same. Adds up what travelled.
  std::vector<float> step(const std::vector<std::vector<float>>& in) {
    std::vector<std::vector<float>> before(states.size());
    for (std::size_t round = 0; round < linear.rounds(); ++round) {
      const std::size_t count = linear.sums(piece(0), rows * columns, round);
      travelled += count;
      std::vector<float> total(count);
      for (std::size_t r = 0; r < states.size(); ++r) {
        std::vector<float> own(count);
        linear.contribute(piece(r), round, in[r], states[r], before[r], own);
        for (std::size_t i = 0; i < count; ++i) total[i] += own[i];
      }
      for (auto& sums : before) sums.insert(sums.end(), total.begin(), total.end());
    }
    ++number;
    std::vector<float> result;
    for (std::size_t r = 0; r < states.size(); ++r) {
      std::vector<float> values = in[r];
      linear.conclude(piece(r), before[r], states[r], values);
      if (r > 0) CHECK(same(values, result));
      result = values;
    }
    return result;
  }

  Piece piece(std::size_t rank) const {
    return {.parameter = 2,
            .size = rows * columns,
            .rows = rows,
            .step = number,
            .seed = 4,
            .rank = static_cast<Rank>(rank),
            .ranks = static_cast<Rank>(states.size())};
  }

  std::unique_ptr<Codec> codec;
  LinearCodec& linear;
  std::size_t rows;
  std::size_t columns;
  std::vector<State> states;
  std::uint64_t number = 0;
  std::size_t travelled = 0;
};

/// M = U diag(sizes) Vᵀ, of random directions.
std::vector<float> with_directions(std::size_t rows, std::size_t columns, const std::vector<float>& sizes) {
  std::vector<float> m(rows * columns);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const auto u = normal(rows, 2 * k);
    const auto v = normal(columns, 2 * k + 1);
    const float scale = sizes[k] / static_cast<float>(std::sqrt(energy(u) * energy(v)));
    for (std::size_t i = 0; i < m.size(); ++i) m[i] += scale * u[i / columns] * v[i % columns];
  }
  return m;
}

}  // namespace

TEST_CASE("products of low rank have the bits of their specification on every instruction set") {
  for (const std::string_view target : kernel::simd_targets()) {
    kernel::force_simd_target(target);
    for (const std::size_t rows : {1UL, 3UL, 8UL, 9UL, 17UL}) {
      for (const std::size_t columns : {1UL, 5UL, 15UL, 16UL, 33UL, 100UL}) {
        for (const std::size_t rank : {1UL, 2UL, 3UL, 4UL, 5UL, 7UL, 16UL}) {
          INFO(target << ": " << rows << " x " << columns << ", rank " << rank);
          const simd::LowRank shape{rows, columns, rank};
          // One off, so that no address is aligned.
          const auto in = normal(rows * columns + 1, 1);
          const auto residual = normal(rows * columns + 1, 2);
          const auto q = normal(rank * columns + 1, 3);
          std::vector<float> m = residual;
          std::vector<float> p(rows * rank + 1);
          simd::add_and_project(shape, in.data() + 1, m.data() + 1, q.data() + 1, p.data() + 1);
          std::vector<float> back(rank * columns + 1, 7.0F);
          simd::project_back(shape, m.data() + 1, p.data() + 1, back.data() + 1);
          std::vector<float> set(rows * columns + 1);
          std::vector<float> add = residual;
          std::vector<float> subtract = residual;
          simd::expand(shape, simd::Into::set, p.data() + 1, back.data() + 1, set.data() + 1);
          simd::expand(shape, simd::Into::add, p.data() + 1, back.data() + 1, add.data() + 1);
          simd::expand(shape, simd::Into::subtract, p.data() + 1, back.data() + 1, subtract.data() + 1);
          std::vector<float> sum(m.size());
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = i == 0 ? residual[i] : in[i] + residual[i];
          bool right = same(m, sum);
          for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t c = 0; c < rank; ++c)
              right = right && p[1 + i * rank + c] ==
                                   dot(m.data() + 1 + i * columns, q.data() + 1 + c * columns, columns);
          }
          for (std::size_t c = 0; c < rank; ++c) {
            for (std::size_t j = 0; j < columns; ++j)
              right = right && back[1 + c * columns + j] ==
                                   accumulate(0, m.data() + 1 + j, columns, p.data() + 1 + c, rank, rows);
          }
          for (std::size_t i = 0; i < rows * columns; ++i) {
            const float product =
                combine(p.data() + 1 + i / columns * rank, back.data() + 1 + i % columns, columns, rank);
            right = right && set[i + 1] == product && add[i + 1] == residual[i + 1] + product &&
                    subtract[i + 1] == residual[i + 1] - product;
          }
          CHECK(right);
        }
      }
    }
  }
  kernel::force_simd_target("");
}

TEST_CASE("a matrix of the rank that is sent arrives whole, at once and from several ranks") {
  for (const std::size_t ranks : {1UL, 3UL}) {
    Group group(ranks, 40, 60);
    const auto m = with_directions(40, 60, {3, 2, 1});
    const auto sum = group.step(std::vector<std::vector<float>>(ranks, m));
    for (std::size_t i = 0; i < m.size(); ++i)
      REQUIRE(std::abs(sum[i] - static_cast<float>(ranks) * m[i]) < 1e-5F);
    CHECK(group.travelled == 4 * 100);
  }
}

TEST_CASE("steps that start warm find the largest directions") {
  Group group(1, 50, 70, "powersgd:rank=2");
  const auto m = with_directions(50, 70, {10, 5, 1, 1, 1, 1, 1, 1});
  double found = 0;
  for (int step = 0; step < 5; ++step) {
    // Without what was kept, so that every step sees the same.
    std::ranges::fill(group.states[0].array(residual_name), 0.0F);
    found = energy(group.step({m}));
  }
  CHECK(found > 0.995 * 125);
  CHECK(found <= 1.001 * energy(m));
}

TEST_CASE("what ranks send and what they keep make up what they had") {
  Group group(3, 30, 50);
  std::vector<double> balance(1500);
  for (std::uint64_t step = 0; step < 100; ++step) {
    std::vector<std::vector<float>> in;
    for (std::uint64_t r = 0; r < 3; ++r) in.push_back(normal(1500, 10 * step + r));
    const auto sum = group.step(in);
    for (std::size_t i = 0; i < 1500; ++i) {
      for (const auto& own : in) balance[i] += static_cast<double>(own[i]);
      balance[i] -= static_cast<double>(sum[i]);
    }
  }
  double kept_energy = 0;
  for (State& state : group.states) {
    const auto residual = state.array(residual_name);
    kept_energy = std::max(kept_energy, energy(residual));
    for (std::size_t i = 0; i < 1500; ++i) balance[i] -= static_cast<double>(residual[i]);
    CHECK(same(state.array("q", 200), group.states[0].array("q", 200)));
  }
  CHECK(std::ranges::all_of(balance, [](double x) { return std::abs(x) < 1e-3; }));
  // A hundred steps of independent noise have 150 000; feedback sends a good part of it.
  CHECK(kept_energy < 75'000);
}

TEST_CASE("zeros do not stop it for ever, and neither does a NaN") {
  Group group(2, 20, 40);
  const std::vector<float> zeros(800);
  CHECK(energy(group.step({zeros, zeros})) == 0);
  const auto m = with_directions(20, 40, {2});
  CHECK(std::abs(energy(group.step({m, zeros})) - 4) < 1e-3);
  auto bad = m;
  bad[123] = std::numeric_limits<float>::infinity();
  const auto spoiled = group.step({zeros, bad});
  CHECK(std::ranges::all_of(spoiled, [](float x) { return std::isnan(x); }));
  const auto next = group.step({m, m});
  CHECK(std::ranges::all_of(next, [](float x) { return std::isfinite(x); }));
  CHECK(energy(next) > 4);
}

TEST_CASE("what would not become half as small goes as it is") {
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{1, 64}, {8, 8}, {15, 17}}) {
    Group group(2, rows, columns);
    const auto a = normal(rows * columns, 1);
    const auto b = normal(rows * columns, 2);
    const auto sum = group.step({a, b});
    for (std::size_t i = 0; i < sum.size(); ++i) REQUIRE(sum[i] == a[i] + b[i]);
    CHECK(group.travelled == rows * columns);
  }
}

TEST_CASE("one rank's encoding, byte by byte, is what the rounds make") {
  Group group(1, 30, 50);
  const auto codec = make_codec("powersgd");
  State state(1500);
  for (int step = 0; step < 3; ++step) {
    const auto m = normal(1500, static_cast<std::uint64_t>(step));
    std::vector<std::byte> out(codec->max_bytes(1500) + 1);
    const Piece piece = group.piece(0);
    const auto expected = group.step({m});
    const std::size_t bytes = codec->encode(piece, m, state, std::span(out).subspan(1));
    CHECK(bytes == 4 * 4 * 80);
    const auto used = std::span(out).subspan(1, bytes);
    std::vector<float> decoded(1500);
    codec->decode(piece, used, decoded);
    CHECK(same(decoded, expected));
    std::vector<float> sum(1500, 1.0F);
    codec->decode_add(piece, used, sum);
    for (std::size_t i = 0; i < sum.size(); ++i) REQUIRE(sum[i] == 1.0F + decoded[i]);
    CHECK(same(state.array(residual_name), group.states[0].array(residual_name)));
    CHECK_THROWS_AS(codec->decode(piece, used.first(bytes - 4), decoded), MismatchError);
  }
}
