// Kernels under the thread sanitizer, whose threads are the fibres of the emulator: what no barrier orders is
// a race. Usage: simt_races planted|kernels. It ends with another status than 0 if there was a race, which it
// names.
#include <cstdio>
#include <string_view>
#include <vector>

#include "compress/arithmetic/block.hpp"
#include "cuda/kernels/blocks.hpp"
#include "simt/simt.hpp"
#include "simt/toys.hpp"

using namespace tutti;
using compress::BlockFormat;

namespace {

template <BlockFormat format>
void encode_and_decode(std::uint64_t seed, std::uint32_t block, std::uint64_t count) {
  const std::vector<float> values(count, 1.5F);
  std::vector<float> residual(count, 0.25F);
  const std::size_t bytes = compress::block_scale_bytes(count, block) + count;
  const simt::DeviceMemory one((bytes + 15) / 16 * 16);
  const simt::DeviceMemory two((bytes + 15) / 16 * 16);
  const auto encode = [&]<class Source>(const Source& source, std::byte* out) {
    simt::run<cuda::EncodeBlocks<format, Source>>({.source = source,
                                                   .residual = residual.data(),
                                                   .out = out,
                                                   .count = count,
                                                   .first = 0,
                                                   .block = block,
                                                   .stochastic = seed % 2 == 1,
                                                   .draws = {},
                                                   .given = compress::block_scale(0x40000000U, 1.0F)},
                                                  {seed});
  };
  encode(cuda::MemorySource{values.data()}, one.data());
  const cuda::Messages messages{{one.data(), one.data()}, 2};
  encode(cuda::MessageSource{messages}, two.data());
  simt::run<cuda::DecodeBlocks<format>>(
      {.messages = messages, .out = residual.data(), .count = count, .block = block, .add = true}, {seed});
}

template <BlockFormat... formats>
void all_formats() {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    (encode_and_decode<formats>(seed, 64, 1000), ...);
    (encode_and_decode<formats>(seed, 512, 1100), ...);
  }
}

void kernels() {
  std::vector<std::uint32_t> out(3 * simt::Census::threads);
  std::uint32_t count = 0;
  simt::run<simt::Census>({out.data(), &count, 3}, {1});
  simt::run<simt::Reverse<true>>({out.data()}, {1});
  all_formats<BlockFormat::int8, BlockFormat::int4, BlockFormat::fp8, BlockFormat::ternary,
              BlockFormat::onebit, BlockFormat::qsgd8, BlockFormat::qsgd4, BlockFormat::terngrad>();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "planted") {
    std::vector<std::uint32_t> out(simt::Reverse<false>::threads);
    simt::run<simt::Reverse<false>>({out.data()}, {0});
  } else if (what == "kernels") {
    kernels();
  } else {
    std::fputs("usage: simt_races planted|kernels\n", stderr);
    return 2;
  }
  std::puts("ran to the end");
}
