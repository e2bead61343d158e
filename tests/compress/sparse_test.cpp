#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "compress/arithmetic/dgc.hpp"
#include "compress/codec.hpp"
#include "compress/sparse/pick.hpp"
#include "compress/sparse/wire.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::compress;

namespace {

Piece piece_of(std::size_t count, std::uint64_t step = 0) {
  return {.parameter = 3, .size = count, .step = step, .seed = 11, .rank = 1, .ranks = 4};
}

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  base::Random random(seed, 3);
  std::vector<float> result(count);
  for (float& x : result) x = static_cast<float>(random.normal());
  return result;
}

/// The k largest by sorting: the lowest index first among equals, zeros never.
std::vector<std::uint32_t> largest(const std::vector<float>& values, std::size_t k) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return key_of(values[a]) > key_of(values[b]); });
  order.resize(std::min(k, order.size()));
  std::erase_if(order, [&](auto i) { return key_of(values[i]) == 0; });
  std::ranges::sort(order);
  return order;
}

/// Distributions on which a histogram, a sample or a mean goes wrong.
std::vector<std::pair<std::string, std::vector<float>>> distributions(std::size_t count) {
  std::vector<std::pair<std::string, std::vector<float>>> all;
  all.emplace_back("normal", numbers(count, 1));
  all.emplace_back("zeros", std::vector<float>(count, 0.0F));
  all.emplace_back("equal", std::vector<float>(count, -2.5F));
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::bit_cast<float>(0x3F800000U + static_cast<std::uint32_t>(i % 977));
  all.emplace_back("one bin", values);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 7919 % 5003));
  all.emplace_back("denormal", values);
  for (std::size_t i = 0; i < count; ++i) values[i] = i % 2 == 0 ? 1.0F : -1.0F;
  all.emplace_back("two signs", values);
  std::ranges::fill(values, 0.0F);
  for (std::size_t i = 0; i < count; i += 1009) values[i] = static_cast<float>(i) + 1;
  all.emplace_back("few", values);
  values = numbers(count, 2);
  for (std::size_t i = 0; i < count / 50; ++i) values[i] *= 1000;
  all.emplace_back("large ones first", values);
  values = numbers(count, 2);
  if (count > 0) values[count / 2] = 1e30F;
  all.emplace_back("an outlier", values);
  return all;
}

struct Sent {
  std::vector<float> decoded;
  std::vector<std::uint32_t> index;  ///< of what is not 0
  std::size_t bytes = 0;
};

Sent send(Codec& codec, const Piece& piece, const std::vector<float>& in, State& state) {
  std::vector<std::byte> out(codec.max_bytes(in.size()));
  Sent sent;
  sent.bytes = codec.encode(piece, in, state, out);
  sent.decoded.assign(in.size(), 5.0F);
  codec.decode(piece, std::span(out).first(sent.bytes), sent.decoded);
  for (std::uint32_t i = 0; i < in.size(); ++i) {
    if (sent.decoded[i] != 0.0F) sent.index.push_back(i);
  }
  return sent;
}

std::vector<float> kept(State& state, std::string_view name = residual_name) {
  const auto values = state.array(name);
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("the key at a rank is what sorting says") {
  for (const auto& [name, values] : distributions(3001)) {
    std::vector<Key> keys(values.size());
    std::ranges::transform(values, keys.begin(), key_of);
    std::vector<Key> sorted = keys;
    std::ranges::sort(sorted, std::greater<>());
    INFO(name);
    for (const std::size_t rank : {1UL, 2UL, 30UL, 1500UL, 3000UL, 3001UL})
      CHECK(kth_largest(keys, rank) == sorted[rank - 1]);
  }
}

TEST_CASE("top-k sends exactly the largest, the lowest index first, and keeps the rest") {
  for (const std::size_t count : {0UL, 1UL, 2UL, 100UL, 5000UL, 300000UL}) {
    for (const auto& [name, values] : distributions(count)) {
      for (const double density : {1e-4, 0.01, 0.3, 1.0}) {
        if (count > 10000 && density == 0.3) continue;
        INFO(name << ", " << count << " elements, density " << density);
        const auto codec = make_codec("topk:density=" + std::to_string(density));
        State state(count);
        std::vector<float> sum(count);
        for (std::uint64_t step = 0; step < 2; ++step) {
          for (std::size_t i = 0; i < count; ++i) sum[i] = values[i] + sum[i];
          const Sent sent = send(*codec, piece_of(count, step), values, state);
          const auto expected = largest(sum, entries_of(density, count));
          REQUIRE(sent.index == expected);
          for (const std::uint32_t i : expected) {
            REQUIRE(sent.decoded[i] == sum[i]);
            sum[i] = 0;
          }
          REQUIRE(kept(state) == sum);
        }
      }
    }
  }
}

TEST_CASE(
    "blocktopk sends exactly the largest of each block, pieces by pieces, whatever its last threshold") {
  constexpr std::size_t block = 512;
  constexpr double density = 0.02;
  for (const std::string values_form : {"fp32", "bf16"}) {
    const auto codec = make_codec("blocktopk:block=512:density=0.02:values=" + values_form);
    for (const std::size_t count : {1UL, 100UL, 512UL, 5000UL}) {
      for (const auto& [name, values] : distributions(count)) {
        INFO(name << ", " << count << " elements");
        State state(count);
        std::vector<float> sum(count);
        for (std::uint64_t step = 0; step < 4; ++step) {
          const float scale = step == 2 ? 1e-3F : 1.0F;
          std::vector<float> in(values.begin(), values.end());
          for (float& x : in) x *= scale;
          for (std::size_t i = 0; i < count; ++i) sum[i] = in[i] + sum[i];
          const Sent sent = send(*codec, piece_of(count, step), in, state);
          std::vector<float> decoded(count);
          for (std::size_t at = 0; at < count; at += block) {
            const std::size_t size = std::min(block, count - at);
            const std::vector<float> part(sum.begin() + static_cast<std::ptrdiff_t>(at),
                                          sum.begin() + static_cast<std::ptrdiff_t>(at + size));
            for (const std::uint32_t i : largest(part, entries_of(density, size))) {
              decoded[at + i] = values_form == "fp32" ? sum[at + i] : from_bfloat16(to_bfloat16(sum[at + i]));
              sum[at + i] -= decoded[at + i];
            }
          }
          REQUIRE(sent.decoded == decoded);
          REQUIRE(kept(state) == sum);
        }
      }
    }
  }
}

TEST_CASE("a guess that is too high, right or too low finds the same") {
  const auto values = numbers(20000, 9);
  const auto expected = largest(values, 200);
  for (const Key guess :
       {least_key, key_of(0.1F), key_of(2.5F), key_of(3.9F), key_of(100.0F), infinity_key}) {
    auto array = values;
    Entries entries;
    const Key smallest = pick_exactly(finding(array), array, {.threshold = guess}, 200, entries);
    CHECK(entries.index == expected);
    CHECK(std::ranges::all_of(entries.value, [&](float x) { return key_of(x) >= smallest; }));
  }
}

TEST_CASE("a threshold that is used again stays within its limits and follows what comes") {
  constexpr std::size_t count = 50000;
  for (const auto& [name, values] : distributions(count)) {
    INFO(name);
    const auto codec = make_codec("topk:reuse=8");
    State state(count);
    std::size_t steps_near = 0;
    for (std::uint64_t step = 0; step < 60; ++step) {
      std::vector<float> in = values;
      if (name == "normal") in = numbers(count, 100 + step);
      const Sent sent = send(*codec, piece_of(count, step), in, state);
      CHECK(sent.index.size() <= 625);
      if (step % 9 == 0 && name == "normal") CHECK(sent.index.size() == 500);
      if (step >= 20 && sent.index.size() * 2 >= 500) ++steps_near;
    }
    if (name == "normal" || name == "an outlier") CHECK(steps_near >= 36);
  }
}

TEST_CASE("Deep Gradient Compression follows its recurrence") {
  constexpr std::size_t count = 4000;
  for (const std::string options : {"", ":momentum=0.5:clip=1", ":warmup=8:clip=100"}) {
    INFO(options);
    const auto codec = make_codec("dgc:density=0.01" + options);
    CHECK_FALSE(codec->feedback());
    const float beta = options.find("momentum") == std::string::npos ? 0.9F : 0.5F;
    const double clip = options.empty() ? 0 : options.find("=100") != std::string::npos ? 100 : 1;
    const std::uint64_t warmup = options.find("warmup") == std::string::npos ? 0 : 8;
    State state(count);
    std::vector<float> u(count);
    std::vector<float> v(count);
    for (std::uint64_t step = 0; step < 12; ++step) {
      const auto in = numbers(count, 40 + step);
      const float scale = dgc_scale(std::sqrt(sum_of_squares(in.data(), count)), clip, 4);
      for (std::size_t i = 0; i < count; ++i) {
        u[i] = dgc_momentum(u[i], in[i], beta, scale);
        v[i] += u[i];
      }
      const std::size_t wanted = entries_of(dgc_density(0.01, step, warmup), count);
      const Sent sent = send(*codec, piece_of(count, step), in, state);
      REQUIRE(sent.index.size() <= wanted);
      REQUIRE(sent.index.size() * 10 >= wanted * 8);
      // Whatever number the sample led to, it is the largest of them.
      REQUIRE(sent.index == largest(v, sent.index.size()));
      for (const std::uint32_t i : sent.index) {
        REQUIRE(sent.decoded[i] == v[i]);
        u[i] = v[i] = 0;
      }
      REQUIRE(kept(state, "momentum") == u);
      REQUIRE(kept(state) == v);
    }
  }
}

TEST_CASE("RedSync sends what its rules say") {
  constexpr std::size_t count = 50000;
  constexpr std::size_t k = 500;
  for (const auto& [name, values] : distributions(count)) {
    INFO(name);
    State trimmed_state(count);
    const auto trimmed = make_codec("redsync:density=0.01:small=0:quantised=off");
    CHECK(send(*trimmed, piece_of(count), values, trimmed_state).index == largest(values, k));

    State state(count);
    const auto searched = make_codec("redsync:density=0.01:small=0:large=0:quantised=off");
    for (std::uint64_t step = 0; step < 8; ++step) {
      const Sent sent = send(*searched, piece_of(count, step), values, state);
      CHECK(sent.index.size() <= 2 * k);
      if (step == 0) CHECK(sent.index.size() >= std::min(k, largest(values, k).size()));
    }
  }
  const auto values = numbers(count, 3);
  for (const char* large : {"0", "4096"}) {
    const auto codec = make_codec(std::string("redsync:density=0.01:small=0:large=") + large);
    State state(count);
    for (std::uint64_t step = 0; step < 4; ++step) {
      const Sent sent = send(*codec, piece_of(count, step), values, state);
      REQUIRE(!sent.index.empty());
      const float mean = sent.decoded[sent.index[0]];
      CHECK((mean > 0) == (step % 2 == 0));
      for (const std::uint32_t i : sent.index) REQUIRE(sent.decoded[i] == mean);
      CHECK(sent.bytes <= 4 + 4 + 2 * (2 * k + 1));
    }
  }
  const auto small = make_codec("redsync");
  State state(1000);
  CHECK(send(*small, piece_of(1000), numbers(1000, 4), state).decoded == numbers(1000, 4));
}

TEST_CASE("random-k draws the same on every rank, evenly, and adds up") {
  constexpr std::size_t count = 1000;
  const auto codec = make_codec("randomk:density=0.05");
  std::vector<int> drawn(count);
  for (std::uint64_t step = 0; step < 2000; ++step) {
    const std::vector<float> ones(count, 1.0F);
    Piece piece = piece_of(count, step);
    State state(count);
    const Sent sent = send(*codec, piece, ones, state);
    REQUIRE(sent.index.size() == 50);
    for (const std::uint32_t i : sent.index) ++drawn[i];
    if (step > 20) continue;
    piece.rank = 3;
    State other(count);
    REQUIRE(send(*codec, piece, ones, other).index == sent.index);
  }
  // 100 are expected, with a deviation of 10.
  CHECK(*std::ranges::min_element(drawn) > 50);
  CHECK(*std::ranges::max_element(drawn) < 150);

  std::array<std::vector<std::byte>, 2> encodings;
  std::vector<float> both(count);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    Piece piece = piece_of(count);
    piece.rank = static_cast<Rank>(rank);
    State state(count);
    encodings[rank].resize(codec->max_bytes(count));
    codec->encode(piece, numbers(count, rank), state, encodings[rank]);
    codec->decode_add(piece, encodings[rank], both);
  }
  for (std::size_t at = 0; at < encodings[0].size(); at += 4) {
    std::array<float, 2> x{};
    for (std::size_t rank = 0; rank < 2; ++rank) std::memcpy(&x[rank], encodings[rank].data() + at, 4);
    x[0] += x[1];
    std::memcpy(encodings[0].data() + at, x.data(), 4);
  }
  std::vector<float> sum(count);
  codec->decode(piece_of(count), encodings[0], sum);
  CHECK(sum == both);

  State state(count);
  const auto scaled = make_codec("randomk:density=0.05:feedback=off");
  const Sent sent = send(*scaled, piece_of(count), std::vector<float>(count, 1.0F), state);
  for (const std::uint32_t i : sent.index) CHECK(sent.decoded[i] == 20.0F);
  CHECK(state.arrays().empty());
}

TEST_CASE("NaN and infinity are sent once and leave nothing behind") {
  for (const std::string name :
       {"topk", "topk:values=bf16", "dgc:momentum=0", "dgc", "randomk", "redsync:small=0:density=0.01",
        "redsync:small=0:large=0:density=0.01", "redsync:small=0:quantised=off:density=0.01", "blocktopk",
        "blocktopk:values=bf16"}) {
    INFO(name);
    constexpr std::size_t count = 6000;
    const auto codec = make_codec(name);
    State state(count);
    std::vector<float> in = numbers(count, 1);
    in[17] = std::numeric_limits<float>::quiet_NaN();
    in[5500] = -std::numeric_limits<float>::infinity();
    send(*codec, piece_of(count), in, state);
    const auto finite = [](float x) { return std::isfinite(x); };
    for (const auto& [array, values] : state.arrays()) {
      INFO(array);
      CHECK(std::ranges::all_of(values, finite));
    }
    CHECK(std::ranges::all_of(send(*codec, piece_of(count, 1), numbers(count, 2), state).decoded, finite));
  }
}

TEST_CASE("indices travel in the shortest form and come back") {
  for (const auto& [count, k] : std::vector<std::pair<std::size_t, std::size_t>>{{0, 0},
                                                                                 {1, 1},
                                                                                 {9, 9},
                                                                                 {1000, 0},
                                                                                 {1000, 3},
                                                                                 {1000, 100},
                                                                                 {1000, 1000},
                                                                                 {200000, 1},
                                                                                 {500000, 3},
                                                                                 {200000, 20},
                                                                                 {2000000, 2}}) {
    for (const auto form : {Format::Values::fp32, Format::Values::bf16, Format::Values::one}) {
      INFO(k << " of " << count);
      const Format format(form);
      std::vector<std::uint32_t> index(k);
      for (std::size_t i = 0; i < k; ++i)
        index[i] = static_cast<std::uint32_t>((2 * i + 1) * count / (2 * k));
      if (k > 1) index.back() = static_cast<std::uint32_t>(count - 1);
      const std::vector<float> values(k, 1.5F);
      std::vector<std::byte> out(format.bound(count, k));
      const std::size_t bytes = format.write(count, index, values, out);
      CHECK(bytes <= out.size());
      CHECK(format.bound(count, k) <= 4 + 4 * k + std::min(4 * k, (count + 7) / 8));
      std::vector<float> decoded(count, 7.0F);
      format.decode(std::span(out).first(bytes), decoded);
      std::vector<float> expected(count);
      for (const std::uint32_t i : index) expected[i] = 1.5F;
      CHECK(decoded == expected);
      // One element less, or one byte less or more, is another encoding.
      const std::vector<float> untouched(count, 7.0F);
      std::vector<float> sum = untouched;
      CHECK_THROWS_AS(format.decode(std::span(out).first(bytes - 1), sum), MismatchError);
      out.resize(bytes + 1);
      CHECK_THROWS_AS(format.decode_add(out, sum), MismatchError);
      CHECK(sum == untouched);
    }
  }
  CHECK_THROWS_AS(Format(Format::Values::fp32).bound(1ULL << 32U, 1), InvalidArgument);
}

TEST_CASE("garbage is refused or decoded, never followed") {
  base::Random random(4);
  for (const std::string name :
       {"topk", "topk:density=0.2", "blocktopk", "dgc", "redsync:small=0", "redsync"}) {
    constexpr std::size_t count = 5000;
    const auto codec = make_codec(name);
    State state(count);
    std::vector<std::byte> right(codec->max_bytes(count));
    right.resize(codec->encode(piece_of(count), numbers(count, 6), state, right));
    std::vector<float> decoded(count);
    int refused = 0;
    for (int i = 0; i < 3000; ++i) {
      auto bytes = right;
      const std::size_t changes = 1 + random.below(4);
      for (std::size_t change = 0; change < changes; ++change)
        bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
      if (i % 3 == 0) bytes.resize(random.below(bytes.size() + 1));
      try {
        codec->decode(piece_of(count), bytes, decoded);
      } catch (const MismatchError&) {
        ++refused;
      }
    }
    INFO(name);
    CHECK(refused > 900);
  }
}
