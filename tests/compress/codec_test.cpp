#include "compress/codec.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "kernel/kernel.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::compress;

namespace {

/// Names of all codecs, and variants that go other ways in the code.
std::vector<std::string> variants() {
  std::vector<std::string> names;
  for (const Entry& entry : codecs()) {
    names.emplace_back(entry.name);
    const std::string options(entry.options);
    if (options.find("rounding=") != std::string::npos)
      names.push_back(names.back() + ":rounding=stochastic");
    if (options.find("block=") != std::string::npos) names.push_back(std::string(entry.name) + ":block=64");
    if (options.find("feedback=") != std::string::npos) {
      names.push_back(std::string(entry.name) + ":feedback=on");
      names.push_back(std::string(entry.name) + ":feedback=off");
    }
    if (options.find("density=") != std::string::npos)
      names.push_back(std::string(entry.name) + ":density=0.1");
    if (options.find("values=") != std::string::npos)
      names.push_back(std::string(entry.name) + ":values=bf16");
    if (options.find("momentum=") != std::string::npos) {
      names.push_back(std::string(entry.name) + ":momentum=0:warmup=40");
      names.push_back(std::string(entry.name) + ":clip=1");
    }
    if (options.find("reuse=") != std::string::npos)
      names.push_back(std::string(entry.name) + ":density=0.02:reuse=3");
    if (options.find("small=") != std::string::npos) {
      for (const char* large : {"0", "4096"}) {
        for (const char* quantised : {"on", "off"})
          names.push_back(std::string(entry.name) + ":density=0.05:small=0:large=" + large +
                          ":quantised=" + quantised);
      }
    }
  }
  return names;
}

std::vector<float> values(std::size_t count, std::uint64_t seed) {
  base::Random random(seed, 3);
  std::vector<float> result(count);
  for (float& x : result) x = static_cast<float>(random.normal() * std::exp(3 * random.normal()));
  return result;
}

Piece piece_of(std::size_t count) {
  return {.parameter = 3, .offset = 0, .size = count, .step = 5, .seed = 11, .rank = 1, .ranks = 4};
}

struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<float> decoded;
  std::vector<float> residual;

  bool operator==(const Encoded& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
               return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
             });
    };
    return bytes == other.bytes && same(decoded, other.decoded) && same(residual, other.residual);
  }
};

/// Several steps, at an address that is `shift` bytes off for the input and the output.
Encoded run(const std::string& name, std::size_t count, std::size_t shift, int steps = 2) {
  const auto codec = make_codec(name);
  State state(count);
  Encoded result;
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> in = values(count, 17 + static_cast<std::uint64_t>(step));
    std::vector<float> shifted(count + 16);
    std::copy(in.begin(), in.end(), shifted.begin() + static_cast<std::ptrdiff_t>(shift % 16));
    std::vector<std::byte> out(codec->max_bytes(count) + 64);
    Piece piece = piece_of(count);
    piece.step += static_cast<std::uint64_t>(step);
    const std::size_t bytes = codec->encode(piece, std::span(shifted).subspan(shift % 16, count), state,
                                            std::span(out).subspan(shift % 64, codec->max_bytes(count)));
    REQUIRE(bytes <= codec->max_bytes(count));
    if (codec->algebra() != Algebra::gatherable) REQUIRE(bytes == codec->max_bytes(count));
    const auto used = std::span(out).subspan(shift % 64, bytes);
    result.bytes.insert(result.bytes.end(), used.begin(), used.end());
    result.decoded.assign(count, -1.0F);
    codec->decode(piece, used, result.decoded);
  }
  if (codec->feedback()) {
    const auto residual = state.array(residual_name);
    result.residual.assign(residual.begin(), residual.end());
  }
  return result;
}

}  // namespace

TEST_CASE("names and options of codecs") {
  CHECK(codecs().size() >= 2);
  for (const Entry& entry : codecs()) {
    CHECK(!entry.source.empty());
    CHECK(make_codec(entry.name) != nullptr);
    CHECK_THROWS_AS(make_codec(std::string(entry.name) + ":nosuch=1"), InvalidArgument);
    CHECK_THROWS_AS(make_codec(std::string(entry.name) + ":nosuch"), InvalidArgument);
  }
  CHECK_THROWS_WITH(make_codec("zip"), ContainsSubstring("known are"));
}

TEST_CASE("the same bytes on every instruction set, at every address and length") {
  for (const std::string& name : variants()) {
    for (const std::size_t count :
         {0UL,  1UL,  2UL,   3UL,   7UL,   15UL,  16UL,  17UL,   31UL,   33UL,  63UL,
          64UL, 65UL, 100UL, 255UL, 256UL, 257UL, 511UL, 1000UL, 1025UL, 5000UL}) {
      INFO(name << ", " << count << " elements");
      const Encoded reference = run(name, count, 0);
      for (const std::string_view target : kernel::simd_targets()) {
        kernel::force_simd_target(target);
        for (const std::size_t shift : {0UL, 1UL, 7UL, 13UL}) {
          INFO(target << ", shift " << shift);
          CHECK(run(name, count, shift) == reference);
        }
      }
      kernel::force_simd_target("");
    }
  }
}

TEST_CASE("adding an encoding is adding what it decodes to") {
  for (const std::string& name : variants()) {
    for (const std::size_t count : {1UL, 64UL, 777UL, 4096UL}) {
      const auto codec = make_codec(name);
      State state(count);
      const std::vector<float> in = values(count, 23);
      std::vector<std::byte> out(codec->max_bytes(count));
      const std::size_t bytes = codec->encode(piece_of(count), in, state, out);
      std::vector<float> decoded(count);
      codec->decode(piece_of(count), std::span(out).first(bytes), decoded);
      std::vector<float> sum = values(count, 29);
      std::vector<float> expected = sum;
      for (std::size_t i = 0; i < count; ++i) expected[i] += decoded[i];
      codec->decode_add(piece_of(count), std::span(out).first(bytes), sum);
      INFO(name << ", " << count << " elements");
      CHECK(sum == expected);
    }
  }
}

TEST_CASE("what is sent and what is kept make up what came, over many steps") {
  for (const std::string& name : variants()) {
    if (!make_codec(name)->feedback()) continue;
    const auto codec = make_codec(name);
    constexpr std::size_t count = 3000;
    State state(count);
    std::vector<double> balance(count);
    std::vector<double> scale(count);
    std::vector<float> decoded(count);
    std::vector<std::byte> out(codec->max_bytes(count));
    for (std::uint64_t step = 0; step < 50; ++step) {
      Piece piece = piece_of(count);
      piece.step = step;
      const std::vector<float> in = values(count, 100 + step);
      const std::size_t bytes = codec->encode(piece, in, state, out);
      codec->decode(piece, std::span(out).first(bytes), decoded);
      for (std::size_t i = 0; i < count; ++i) {
        balance[i] += static_cast<double>(in[i]) - static_cast<double>(decoded[i]);
        scale[i] += std::abs(in[i]) + std::abs(decoded[i]);
      }
    }
    const auto residual = state.array(residual_name);
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i)
      worst = std::max(worst, std::abs(balance[i] - static_cast<double>(residual[i])) / (scale[i] + 1e-30));
    INFO(name);
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("values of one piece do not depend on where the parameter was cut") {
  for (const std::string& name : variants()) {
    const auto whole = make_codec(name);
    if (whole->algebra() != Algebra::reencodable) continue;
    const std::size_t cut = 5 * std::max<std::size_t>(whole->block(), 4);
    const std::size_t count = cut + 333;
    const std::vector<float> in = values(count, 31);
    State state(count);
    std::vector<std::byte> out(whole->max_bytes(count));
    Piece piece = piece_of(count);
    whole->encode(piece, in, state, out);
    std::vector<float> expected(count);
    whole->decode(piece, out, expected);
    const auto parts = make_codec(name);
    State state_of_parts(count);
    std::vector<float> found(count);
    for (const auto& [first, length] : {std::pair<std::size_t, std::size_t>{0, cut}, {cut, count - cut}}) {
      piece.offset = first;
      std::vector<std::byte> part(parts->max_bytes(length));
      parts->encode(piece, std::span(in).subspan(first, length), state_of_parts, part);
      parts->decode(piece, part, std::span(found).subspan(first, length));
    }
    INFO(name);
    CHECK(found == expected);
  }
}

TEST_CASE("no NaN and no infinity gets lost") {
  for (const std::string& name : variants()) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      for (const std::size_t at : {0UL, 63UL, 500UL, 999UL}) {
        const auto codec = make_codec(name);
        State state(1000);
        std::vector<float> in = values(1000, 41);
        in[at] = bad;
        std::vector<std::byte> out(codec->max_bytes(1000));
        const std::size_t bytes = codec->encode(piece_of(1000), in, state, out);
        std::vector<float> decoded(1000);
        codec->decode(piece_of(1000), std::span(out).first(bytes), decoded);
        INFO(name << ", " << bad << " at " << at);
        CHECK(std::ranges::any_of(decoded, [](float x) { return !std::isfinite(x); }));
      }
    }
  }
}

TEST_CASE("zeros stay zeros, and an encoding of another length is refused") {
  for (const std::string& name : variants()) {
    const auto codec = make_codec(name);
    State state(512);
    const std::vector<float> in(512, 0.0F);
    std::vector<std::byte> out(codec->max_bytes(512));
    const std::size_t bytes = codec->encode(piece_of(512), in, state, out);
    std::vector<float> decoded(512, 7.0F);
    codec->decode(piece_of(512), std::span(out).first(bytes), decoded);
    INFO(name);
    CHECK(std::ranges::all_of(decoded, [](float x) { return x == 0.0F; }));
    if (codec->algebra() == Algebra::gatherable) continue;
    CHECK_THROWS_AS(codec->decode(piece_of(512), std::span(out).first(bytes - 1), decoded), MismatchError);
    CHECK_THROWS_AS(codec->decode_add(piece_of(512), std::span(out).first(bytes - 1), decoded),
                    MismatchError);
  }
}
