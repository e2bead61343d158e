#include "kernel/arrays.hpp"

#include <bit>
#include <cstring>

using namespace tutti;

namespace arrays {
namespace {

/// The borders of a format with `bits` bits, of which `fraction` are fraction.
void add_floating(std::vector<std::uint64_t>& patterns, unsigned bits, unsigned fraction) {
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const std::uint64_t infinity = sign - (std::uint64_t{1} << fraction);
  const std::uint64_t quiet = infinity | (std::uint64_t{1} << (fraction - 1));
  const std::uint64_t one = (infinity >> 1U) & infinity;
  for (const std::uint64_t positive :
       {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << fraction) - 1, std::uint64_t{1} << fraction,
        one, one + 1, infinity - 1, infinity, infinity + 1, quiet - 1, quiet, quiet + 1, sign - 1}) {
    patterns.push_back(positive);
    patterns.push_back(positive | sign);
  }
}

void add_integer(std::vector<std::uint64_t>& patterns, unsigned bits) {
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  for (const std::uint64_t pattern :
       {std::uint64_t{0}, std::uint64_t{1}, top - 1, top, top + 1, top | (top - 1)})
    patterns.push_back(pattern);
}

std::uint64_t ordinary(DType type, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::byte bytes[8] = {};
  const double value = normal(random);
  const auto integer = static_cast<std::int64_t>(value * 20);
  reference::write(type, {value, static_cast<std::uint64_t>(integer)}, bytes);
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, bytes, sizeof pattern);
  return pattern;
}

}  // namespace

std::vector<std::uint64_t> special_patterns(DType type) {
  std::vector<std::uint64_t> patterns;
  switch (type) {
    case DType::f32: add_floating(patterns, 32, 23); break;
    case DType::f64: add_floating(patterns, 64, 52); break;
    case DType::f16: add_floating(patterns, 16, 10); break;
    case DType::bf16: add_floating(patterns, 16, 7); break;
    case DType::i8:
    case DType::u8:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64: add_integer(patterns, static_cast<unsigned>(8 * size_of(type))); break;
  }
  return patterns;
}

std::vector<std::byte> values(DType type, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<std::uint64_t> special = special_patterns(type);
  const std::size_t width = size_of(type);
  std::vector<std::byte> bytes(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t kind = random() % 8;
    const std::uint64_t pattern = kind < 2   ? special[random() % special.size()]
                                  : kind < 4 ? random()
                                             : ordinary(type, random);
    std::memcpy(bytes.data() + i * width, &pattern, width);
  }
  return bytes;
}

std::string first_difference(DType type, const std::vector<std::byte>& expected,
                             const std::vector<std::byte>& found) {
  if (expected.size() != found.size())
    return fmt::format("expected {} bytes, found {}", expected.size(), found.size());
  const std::size_t width = size_of(type);
  for (std::size_t i = 0; i < expected.size(); i += width) {
    if (std::memcmp(expected.data() + i, found.data() + i, width) == 0) continue;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, expected.data() + i, width);
    std::memcpy(&b, found.data() + i, width);
    return fmt::format("{} element {} of {}: expected {:#x}, found {:#x}", name_of(type), i / width,
                       expected.size() / width, a, b);
  }
  return {};
}

}  // namespace arrays
