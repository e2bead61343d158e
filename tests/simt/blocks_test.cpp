// The kernels of block codecs, their own source on the CPU, against the CPU's codecs: the same bytes.
#include "cuda/kernels/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "compress/awkward.hpp"
#include "compress/simd/block.hpp"
#include "simt/simt.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::compress;
using simt::DeviceMemory;

namespace {

constexpr Draws draws{.seed = 0x123456789ABCULL, .step = 0x700000003ULL, .parameter = 5, .rank = 2};

bool same(const void* a, const void* b, std::size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

struct Case {
  BlockShape shape;
  std::size_t count = 0;
  bool feedback = false;
  std::uint64_t first = 0;
  std::uint64_t seed = 0;      ///< of the schedule
  std::size_t alignment = 16;  ///< of values and residual
};

template <class Source, BlockFormat format>
typename cuda::EncodeBlocks<format, Source>::Args args_of(const Case& c, const Source& source,
                                                          float* residual, std::byte* out) {
  return {.source = source,
          .residual = residual,
          .out = out,
          .count = c.count,
          .first = c.first,
          .block = static_cast<std::uint32_t>(c.shape.block),
          .stochastic = c.shape.stochastic,
          .draws = draws,
          .given = c.shape.given};
}

std::vector<float> finite_for(const Case& c, std::vector<float> values) {
  if (c.shape.format == BlockFormat::terngrad)  // others have no scale that is a number
    std::ranges::replace_if(
        values, [](float x) { return !std::isfinite(x); }, 3.0F);
  return values;
}

/// Encodes with the kernel from memory, decodes it again.
template <BlockFormat format>
void check_encode(const Case& c) {
  const std::vector<float> in = finite_for(c, awkward(c.count, c.shape.block, c.count % 8));
  std::vector<float> residual(c.count);
  base::Random random(7, 1);
  for (float& x : residual) x = static_cast<float>(0.1 * random.normal());
  const std::size_t bytes = c.shape.bytes(c.count);
  const DeviceMemory values(c.count * sizeof(float), c.alignment);
  const DeviceMemory kept(c.count * sizeof(float), c.alignment);
  const DeviceMemory out((bytes + 15) / 16 * 16);
  std::ranges::copy(in, values.as<float>());
  std::ranges::copy(residual, kept.as<float>());
  std::memset(out.data(), 0xA5, (bytes + 15) / 16 * 16);
  simt::run<cuda::EncodeBlocks<format, cuda::MemorySource>>(
      args_of<cuda::MemorySource, format>(c, {values.as<float>()}, c.feedback ? kept.as<float>() : nullptr,
                                          out.data()),
      {c.seed});
  std::vector<std::byte> expected(bytes);
  encode_blocks(c.shape, draws, c.first, in, c.feedback ? residual.data() : nullptr, expected.data());
  CHECK(same(out.data(), expected.data(), bytes));
  for (std::size_t i = bytes; i < (bytes + 15) / 16 * 16; ++i) CHECK(out.data()[i] == std::byte{0xA5});
  CHECK(same(kept.data(), residual.data(), c.count * sizeof(float)));

  for (const bool add : {false, true}) {
    std::vector<float> sum = residual;
    decode_blocks(c.shape, expected.data(), sum, add);
    cuda::Messages messages{{out.data()}, 1};
    const DeviceMemory target(c.count * sizeof(float), c.alignment);
    std::ranges::copy(residual, target.as<float>());
    simt::run<cuda::DecodeBlocks<format>>({.messages = messages,
                                           .out = target.as<float>(),
                                           .count = c.count,
                                           .block = static_cast<std::uint32_t>(c.shape.block),
                                           .add = add},
                                          {c.seed});
    CHECK(same(target.data(), sum.data(), c.count * sizeof(float)));
  }
}

/// What the owner of a slice does: decodes what all have sent, adds, encodes again.
template <BlockFormat format>
void check_sum(const Case& c, unsigned peers) {
  std::vector<std::vector<std::byte>> sent(peers, std::vector<std::byte>(c.shape.bytes(c.count)));
  std::vector<float> sum(c.count);
  std::vector<float> residual(c.count, 0.01F);
  std::vector<DeviceMemory*> memories;
  std::vector<std::unique_ptr<DeviceMemory>> owned;
  cuda::Messages messages{{}, peers};
  for (unsigned peer = 0; peer < peers; ++peer) {
    const std::vector<float> in = finite_for(c, awkward(c.count, c.shape.block, peer + (peer > 2 ? 3 : 0)));
    encode_blocks(c.shape, draws, c.first, in, nullptr, sent[peer].data());
    decode_blocks(c.shape, sent[peer].data(), sum, peer > 0);
    owned.push_back(std::make_unique<DeviceMemory>((sent[peer].size() + 15) / 16 * 16));
    std::ranges::copy(sent[peer], owned.back()->data());
    messages.of[peer] = owned.back()->data();
  }
  const std::size_t bytes = c.shape.bytes(c.count);
  const DeviceMemory kept(c.count * sizeof(float));
  std::ranges::copy(residual, kept.as<float>());
  const DeviceMemory out((bytes + 15) / 16 * 16);
  simt::run<cuda::EncodeBlocks<format, cuda::MessageSource>>(
      args_of<cuda::MessageSource, format>(c, {messages}, c.feedback ? kept.as<float>() : nullptr,
                                           out.data()),
      {c.seed});
  std::vector<std::byte> expected(bytes);
  encode_blocks(c.shape, draws, c.first, sum, c.feedback ? residual.data() : nullptr, expected.data());
  CHECK(same(out.data(), expected.data(), bytes));
  CHECK(same(kept.data(), residual.data(), c.count * sizeof(float)));

  const DeviceMemory total(c.count * sizeof(float));
  simt::run<cuda::DecodeBlocks<format>>({.messages = messages,
                                         .out = total.as<float>(),
                                         .count = c.count,
                                         .block = static_cast<std::uint32_t>(c.shape.block),
                                         .add = false},
                                        {c.seed});
  CHECK(same(total.data(), sum.data(), c.count * sizeof(float)));
}

template <class Run>
void each_format(const Run& run) {
  run.template operator()<BlockFormat::int8>();
  run.template operator()<BlockFormat::int4>();
  run.template operator()<BlockFormat::fp8>();
  run.template operator()<BlockFormat::ternary>();
  run.template operator()<BlockFormat::onebit>();
  run.template operator()<BlockFormat::qsgd8>();
  run.template operator()<BlockFormat::qsgd4>();
  run.template operator()<BlockFormat::terngrad>();
}

constexpr bool rounds_both_ways(BlockFormat format) {
  return format == BlockFormat::int8 || format == BlockFormat::int4 || format == BlockFormat::fp8 ||
         format == BlockFormat::ternary;
}

/// With both roundings where there are two, with and without feedback where there is any.
template <BlockFormat format, class Run>
void each_variant(std::size_t block, const Run& run) {
  for (const bool stochastic : {false, true}) {
    if (!stochastic && !rounds_both_ways(format) && format != BlockFormat::onebit) continue;
    if (stochastic && format == BlockFormat::onebit) continue;
    for (const bool feedback : {false, true}) {
      if (feedback && format == BlockFormat::terngrad) continue;
      INFO("format " << static_cast<int>(format) << ", stochastic " << stochastic << ", feedback "
                     << feedback);
      run(Case{.shape = {format, block, stochastic, block_scale(bits_of(0.7F), 1.0F)}, .feedback = feedback});
    }
  }
}

}  // namespace

TEST_CASE("block codecs: kernels write the CPU's bytes at every length, in every schedule") {
  each_format([]<BlockFormat format>() {
    each_variant<format>(64, [](Case c) {
      for (c.count = 0; c.count <= 330; c.count += c.count < 70 ? 1 : 37) {
        INFO(c.count << " values");
        c.seed = c.count % 3;
        check_encode<format>(c);
      }
    });
  });
}

TEST_CASE("block codecs: kernels do so with long blocks, odd places and odd draws") {
  each_format([]<BlockFormat format>() {
    for (const std::size_t block : {128U, 256U, 320U, 1024U, 4096U}) {
      each_variant<format>(block, [&](Case c) {
        c.count = 2 * block + 77;
        c.first = block == 320 ? 3 : (1ULL << 34U) - 256;
        c.alignment = block == 256 ? 4 : 16;
        INFO("blocks of " << block);
        for (c.seed = 0; c.seed < (block <= 320 ? 3U : 1U); ++c.seed) check_encode<format>(c);
      });
    }
  });
}

TEST_CASE("block codecs: the owner's kernel decodes, adds in order and encodes as the CPU does") {
  each_format([]<BlockFormat format>() {
    for (const unsigned peers : {1U, 2U, 3U, 8U}) {
      each_variant<format>(64, [&](Case c) {
        c.count = 300;
        c.seed = peers % 3;
        INFO(peers << " ranks");
        check_sum<format>(c, peers);
      });
      each_variant<format>(512, [&](Case c) {
        c.count = 1100;
        check_sum<format>(c, peers);
      });
    }
  });
}
