// How fast codecs are on one core, beside a copy in the same minute. Prints medians: nanoseconds an element,
// and the part of the bound by bytes moved (input, residual read and written, payload), at the copy's rate:
// that of plain loads and stores, or of memcpy, whichever is faster in this process. Not
// a test: run by hand as bench_codec [MiB of fp32, default 64] [codec…].
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "compress/codec.hpp"
#include "kernel/kernel.hpp"

using namespace tutti;
using namespace tutti::compress;

namespace {

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(const std::string& name, std::size_t count) {
  const auto codec = make_codec(name);
  State state(count);
  base::Random random(1);
  std::vector<float> in(count);
  for (float& x : in) x = static_cast<float>(random.normal());
  std::vector<float> sum(count);
  std::vector<float> copy(count);
  std::vector<std::byte> out(codec->max_bytes(count));
  const std::size_t rows = std::size_t{1} << static_cast<unsigned>(std::bit_width(count) / 2);
  Piece piece{.parameter = 1, .size = count, .rows = rows, .seed = 3, .ranks = 2};
  std::size_t bytes = 0;
  std::vector<double> copying;
  std::vector<double> encoding;
  std::vector<double> decoding;
  const int repeats = count > (4U << 20U) ? 7 : 40;
  for (int i = 0; i < repeats + 2; ++i) {
    piece.step = static_cast<std::uint64_t>(i);
    const double a =
        std::min(seconds_of([&] { std::memcpy(copy.data(), in.data(), count * sizeof(float)); }),
                 seconds_of([&] { kernel::copy(copy.data(), in.data(), count * sizeof(float)); }));
    const double b = seconds_of([&] { bytes = codec->encode(piece, in, state, out); });
    const double c = seconds_of([&] { codec->decode_add(piece, std::span(out).first(bytes), sum); });
    if (i < 2) continue;
    copying.push_back(a);
    encoding.push_back(b);
    decoding.push_back(c);
  }
  const auto n = static_cast<double>(count);
  const double rate = 2 * sizeof(float) * n / median(copying);
  const double encode_bytes = 4 * n + (codec->feedback() ? 8 * n : 0) + static_cast<double>(bytes);
  const double decode_bytes = 8 * n + static_cast<double>(bytes);
  fmt::print(
      "{:<28} {:>7.2f} x smaller  encode {:>6.3f} ns ({:>5.1f} %)  decode-add {:>6.3f} ns ({:>5.1f} %)  copy "
      "{:.3f} ns\n",
      name, 4 * n / static_cast<double>(bytes), 1e9 * median(encoding) / n,
      100 * encode_bytes / rate / median(encoding), 1e9 * median(decoding) / n,
      100 * decode_bytes / rate / median(decoding), 1e9 * median(copying) / n);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t mebibytes = argc > 1 ? std::stoul(argv[1]) : 64;
  std::vector<std::string> names(argv + std::min(argc, 2), argv + argc);
  if (names.empty()) {
    for (const Entry& entry : codecs()) names.emplace_back(entry.name);
  }
  for (const std::string& name : names) measure(name, (mebibytes << 20U) / sizeof(float));
  return 0;
}
