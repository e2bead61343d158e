#include <bit>
#include <cmath>
#include <cstring>

#include "kernel/arrays.hpp"

using namespace tutti;
using arrays::Guarded;

namespace {

using Bytes = std::vector<std::byte>;

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  return patterns;
}

double value_of(DType half, std::uint16_t bits) {
  return half == DType::f16 ? reference::f16_value(bits) : reference::bf16_value(bits);
}

std::uint16_t nearest(DType half, double value) {
  return half == DType::f16 ? reference::nearest_f16(value) : reference::nearest_bf16(value);
}

/// Every value of a half type, what lies half way to its successor, and the fp32 neighbours of both.
std::vector<float> critical_values(DType half) {
  std::vector<float> values;
  const std::uint32_t infinity = half == DType::f16 ? 0x7c00 : 0x7f80;
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const double low = value_of(half, static_cast<std::uint16_t>(bits));
    const double ulp = low - (bits == 0 ? 0 : value_of(half, static_cast<std::uint16_t>(bits - 1)));
    const double high =
        bits + 1 < infinity ? value_of(half, static_cast<std::uint16_t>(bits + 1)) : low + ulp;
    for (const double point : {low, (low + high) / 2}) {
      const auto exact = static_cast<float>(point);
      for (const float value : {exact, std::nextafter(exact, 0.0F), std::nextafter(exact, INFINITY)}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
  }
  return values;
}

std::vector<std::uint16_t> narrow(DType half, const std::vector<float>& values) {
  std::vector<std::uint16_t> found(values.size());
  kernel::convert(half, Op::sum, {found.data(), half}, {values.data(), DType::f32}, values.size());
  return found;
}

}  // namespace

TEST_CASE("all patterns of the half types widen exactly") {
  const auto patterns = all_patterns();
  arrays::on_every_target([&] {
    for (const DType half : {DType::f16, DType::bf16}) {
      std::vector<float> found(patterns.size());
      kernel::convert(half, Op::sum, {found.data(), DType::f32}, {patterns.data(), half}, patterns.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        const double value = value_of(half, patterns[i]);
        const auto expected =
            std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(static_cast<float>(value));
        if (std::bit_cast<std::uint32_t>(found[i]) != expected) ++wrong;
      }
      INFO(name_of(half));
      REQUIRE(wrong == 0);
    }
  });
}

TEST_CASE("fp32 narrows to the nearest half, to even where two are nearest") {
  for (const DType half : {DType::f16, DType::bf16}) {
    std::vector<float> values = critical_values(half);
    std::mt19937_64 random(7);
    for (int i = 0; i < 200000; ++i)
      values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    for (const float special :
         {INFINITY, -INFINITY, 65519.996F, 65520.0F, 3.4028235e38F, 3.3961775e38F, 1e-45F})
      values.push_back(special);
    std::vector<std::uint16_t> expected;
    for (const float value : values) expected.push_back(nearest(half, static_cast<double>(value)));
    arrays::on_every_target([&] {
      INFO(name_of(half));
      const auto found = narrow(half, values);
      const auto first = std::mismatch(expected.begin(), expected.end(), found.begin());
      if (first.first != expected.end()) {
        const auto i = static_cast<std::size_t>(first.first - expected.begin());
        FAIL(fmt::format("{:a}: expected {:#x}, found {:#x}", values[i], *first.first, *first.second));
      }
      REQUIRE(found.size() == expected.size());
    });
  }
}

TEST_CASE("conversions of every type, in every form") {
  arrays::on_every_target([] {
    for (const DType type : arrays::types)
      for (const Op op : arrays::ops)
        for (const DType source : arrays::forms(type, op))
          for (const DType target : arrays::forms(type, op))
            for (const std::uint64_t divisor : {0, 1, 5})
              for (std::size_t count = 0; count <= 200; count += count < 70 ? 1 : 13) {
                if (divisor != 0 && op != Op::average) continue;
                const DType wide = reference::accumulator(type, op);
                Guarded from(arrays::values(source, count, count), count % 64);
                Guarded to(count * size_of(target), count * 3 % 64);
                Bytes expected(count * size_of(target));
                for (std::size_t i = 0; i < count; ++i) {
                  auto value = reference::read(source, from.data() + i * size_of(source));
                  if (divisor != 0) value = reference::divide(wide, value, divisor);
                  reference::write(target, value, &expected[i * size_of(target)]);
                }
                if (source == target && divisor == 0) expected = from.content();  // a copy keeps NaN payloads
                kernel::convert(type, op, {to.data(), target}, {from.data(), source}, count, divisor);
                const std::string difference = arrays::first_difference(target, expected, to.content());
                INFO(arrays::label(type, op) << " from " << name_of(source) << " divisor " << divisor);
                REQUIRE(difference == "");
                REQUIRE(to.intact());
                if (source != target) continue;
                kernel::convert(type, op, {from.data(), target}, {from.data(), source}, count, divisor);
                REQUIRE(from.content() == expected);
                REQUIRE(from.intact());
              }
  });
}

TEST_CASE("scaling multiplies in the accumulator type") {
  arrays::on_every_target([] {
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (const Op op : arrays::ops)
        for (const DType source : arrays::forms(type, op))
          for (const double factor : {0.1, -2.0, 1e-30, 0.0})
            for (std::size_t count = 0; count <= 130; ++count) {
              const DType target = reference::accumulator(type, op);
              Guarded from(arrays::values(source, count, 900 + count), count % 64);
              Guarded to(count * size_of(target), count * 3 % 64);
              Bytes expected(count * size_of(target));
              for (std::size_t i = 0; i < count; ++i) {
                const double x = reference::read(source, from.data() + i * size_of(source)).floating;
                const double product =
                    type == DType::f64
                        ? x * factor
                        : static_cast<double>(static_cast<float>(x) * static_cast<float>(factor));
                reference::write(target, {product, 0}, &expected[i * size_of(target)]);
              }
              kernel::scale(type, op, {to.data(), target}, {from.data(), source}, count, factor);
              const std::string difference = arrays::first_difference(target, expected, to.content());
              INFO(arrays::label(type, op) << " from " << name_of(source) << " times " << factor);
              REQUIRE(difference == "");
              REQUIRE(to.intact());
            }
  });
}

TEST_CASE("instruction sets are listed, forced and set free again") {
  const auto targets = kernel::simd_targets();
  REQUIRE(!targets.empty());
  CHECK(kernel::simd_target() == targets.front());
  for (const auto target : targets) {
    kernel::force_simd_target(target);
    CHECK(kernel::simd_target() == target);
    CHECK(kernel::simd_targets() == targets);
  }
  kernel::force_simd_target("");
  CHECK(kernel::simd_target() == targets.front());
  CHECK_THROWS_WITH(kernel::force_simd_target("AVX9"),
                    ContainsSubstring("'AVX9'") && ContainsSubstring("choose"));
}
