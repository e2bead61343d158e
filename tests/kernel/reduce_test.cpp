#include <bit>
#include <cstring>

#include "kernel/arrays.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using arrays::Guarded;

namespace {

/// A way of calling reduce().
struct Call {
  Op op;
  DType type;
  DType target, a, b;
  std::uint64_t divisor;

  std::string text() const {
    return fmt::format("{}: {} = {} op {}, divisor {}", arrays::label(type, op), name_of(target), name_of(a),
                       name_of(b), divisor);
  }
};

std::vector<std::byte> expected(const Call& call, const std::vector<std::byte>& a,
                                const std::vector<std::byte>& b) {
  const DType wide = reference::accumulator(call.type, call.op);
  const std::size_t count = a.size() / size_of(call.a);
  std::vector<std::byte> result(count * size_of(call.target));
  for (std::size_t i = 0; i < count; ++i) {
    auto value = reference::apply(call.op, wide, reference::read(call.a, &a[i * size_of(call.a)]),
                                  reference::read(call.b, &b[i * size_of(call.b)]));
    if (call.divisor != 0) value = reference::divide(wide, value, call.divisor);
    reference::write(call.target, value, &result[i * size_of(call.target)]);
  }
  return result;
}

template <class Body>
void every_call(const Body& body) {
  for (const DType type : arrays::types) {
    for (const Op op : arrays::ops) {
      const auto forms = arrays::forms(type, op);
      for (const DType target : forms)
        for (const DType a : forms)
          for (const DType b : forms)
            for (const std::uint64_t divisor : {0, 1, 3, 1024})
              if (divisor == 0 || op == Op::average) body(Call{op, type, target, a, b, divisor});
    }
  }
}

std::vector<std::byte> first(const std::vector<std::byte>& bytes, std::size_t count, DType type) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count * size_of(type))};
}

void check(const Call& call, const std::vector<std::byte>& a, const std::vector<std::byte>& b,
           const std::vector<std::byte>& whole, std::size_t count, std::size_t offset) {
  Guarded left(first(a, count, call.a), offset % 64);
  Guarded right(first(b, count, call.b), offset * 5 % 64);
  Guarded target(count * size_of(call.target), offset * 9 % 64);
  const auto result = first(whole, count, call.target);
  const auto verify = [&](const Guarded& written, const char* how) {
    const std::string difference = arrays::first_difference(call.target, result, written.content());
    INFO(call.text() << ", count " << count << ", offset " << offset << ", " << how);
    REQUIRE(difference == "");
    REQUIRE(written.intact());
  };

  kernel::reduce(call.op, call.type, {target.data(), call.target}, {left.data(), call.a},
                 {right.data(), call.b}, count, call.divisor);
  verify(target, "out of place");
  if (call.target == call.a) {
    Guarded in_place(left);
    kernel::reduce(call.op, call.type, {in_place.data(), call.target}, {in_place.data(), call.a},
                   {right.data(), call.b}, count, call.divisor);
    verify(in_place, "in place of the first");
  }
  if (call.target == call.b) {
    kernel::reduce(call.op, call.type, {right.data(), call.target}, {left.data(), call.a},
                   {right.data(), call.b}, count, call.divisor);
    verify(right, "in place of the second");
  }
}

}  // namespace

TEST_CASE("two arrays give what the definition says, for every count, alignment and instruction set") {
  arrays::on_every_target([] {
    every_call([](const Call& call) {
      const std::size_t most = 2051;
      const auto a = arrays::values(call.a, most, 1);
      const auto b = arrays::values(call.b, most, 2);
      const auto whole = expected(call, a, b);
      for (std::size_t count = 0; count <= 130; ++count) check(call, a, b, whole, count, count);
      for (std::size_t offset = 0; offset < 64; ++offset) check(call, a, b, whole, 67, offset);
      for (const std::size_t count : {1024U, 2051U})  // enough to align the target first
        for (const std::size_t offset : {8U, 24U, 40U, 62U}) check(call, a, b, whole, count, offset);
    });
  });
}

TEST_CASE("swapped operands give the same bits") {
  arrays::on_every_target([] {
    every_call([](const Call& call) {
      const std::size_t count = 1500;
      Guarded a(arrays::values(call.a, count, 3), 0);
      Guarded b(arrays::values(call.b, count, 4), 0);
      Guarded one(count * size_of(call.target), 0);
      Guarded other(count * size_of(call.target), 0);
      kernel::reduce(call.op, call.type, {one.data(), call.target}, {a.data(), call.a}, {b.data(), call.b},
                     count, call.divisor);
      kernel::reduce(call.op, call.type, {other.data(), call.target}, {b.data(), call.b}, {a.data(), call.a},
                     count, call.divisor);
      INFO(call.text());
      REQUIRE(one.content() == other.content());
    });
  });
}

TEST_CASE("every pattern of a half type meets every special one") {
  for (const DType type : {DType::f16, DType::bf16}) {
    std::vector<std::byte> a(65536 * 2);
    for (std::size_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(&a[i * 2], &bits, 2);
    }
    for (const std::uint64_t pattern : arrays::special_patterns(type)) {
      std::vector<std::byte> b(a.size());
      for (std::size_t i = 0; i < 65536; ++i) std::memcpy(&b[i * 2], &pattern, 2);
      for (const Op op : arrays::ops) {
        const Call call{op, type, type, type, type, op == Op::average ? 2U : 0U};
        const auto wanted = expected(call, a, b);
        arrays::on_every_target([&] {
          std::vector<std::byte> found(a.size());
          kernel::reduce(op, type, {found.data(), type}, {a.data(), type}, {b.data(), type}, 65536,
                         call.divisor);
          const std::string difference = arrays::first_difference(type, wanted, found);
          INFO(call.text() << ", other operand " << pattern);
          REQUIRE(difference == "");
        });
      }
    }
  }
}

TEST_CASE("minimum and maximum know signed zeros and pass NaN on") {
  arrays::on_every_target([] {
    const float nan = std::bit_cast<float>(0xffa00001U);
    const std::vector<float> a{0.0F, -0.0F, 1.0F, nan, -0.0F};
    const std::vector<float> b{-0.0F, 0.0F, nan, 1.0F, -0.0F};
    std::vector<float> found(a.size());
    const auto bits = [&](std::size_t i) { return std::bit_cast<std::uint32_t>(found[i]); };
    const auto run = [&](Op op) {
      kernel::reduce(op, DType::f32, {found.data(), DType::f32}, {a.data(), DType::f32},
                     {b.data(), DType::f32}, a.size());
    };
    run(Op::min);
    CHECK(bits(0) == 0x80000000U);
    CHECK(bits(1) == 0x80000000U);
    CHECK(bits(2) == 0x7fc00000U);
    CHECK(bits(3) == 0x7fc00000U);
    CHECK(bits(4) == 0x80000000U);
    run(Op::max);
    CHECK(bits(0) == 0);
    CHECK(bits(1) == 0);
    CHECK(bits(2) == 0x7fc00000U);
    CHECK(bits(3) == 0x7fc00000U);
    CHECK(bits(4) == 0x80000000U);
  });
}

TEST_CASE("averages of integers round toward zero and use 64 bits") {
  arrays::on_every_target([] {
    const std::vector<std::int8_t> a{-7, 7, -128, 127, -1};
    const std::vector<std::int8_t> b{0, 0, -128, 127, 0};
    std::vector<std::int8_t> found(a.size());
    kernel::reduce(Op::average, DType::i8, {found.data(), DType::i8}, {a.data(), DType::i8},
                   {b.data(), DType::i8}, a.size(), 2);
    CHECK(found == std::vector<std::int8_t>{-3, 3, -128, 127, 0});

    const std::uint64_t large = 0xfffffffffffffff0U;
    std::uint64_t average = 0;
    const std::uint64_t six = 6;
    kernel::reduce(Op::average, DType::u64, {&average, DType::u64}, {&large, DType::u64}, {&six, DType::u64},
                   1, 2);
    CHECK(average == 0x7ffffffffffffffbU);
    kernel::reduce(Op::max, DType::u64, {&average, DType::u64}, {&large, DType::u64}, {&six, DType::u64}, 1);
    CHECK(average == large);
  });
}

TEST_CASE("integer averages are exact where quotients are almost whole, and where 64 bits are full") {
  arrays::on_every_target([] {
    std::mt19937_64 random(5);
    for (const DType type : {DType::i64, DType::u64}) {
      // 49 · (1/49) is less than 1 in doubles, and the like.
      for (const std::uint64_t divisor : {49ULL, 103ULL, 107ULL, 197ULL, 1ULL, 2ULL, 3ULL, 7ULL, 4096ULL,
                                          1000003ULL, (1ULL << 49U) + 1, 1ULL << 50U, (1ULL << 62U) + 1}) {
        std::vector<std::uint64_t> dividends;
        for (const bool negated : {false, true}) {  // apart: what shares a vector shares its path
          for (unsigned bits = 0; bits < 64; ++bits) {
            for (int i = 0; i < 8; ++i) {
              const std::uint64_t near = (random() >> (63 - bits)) / divisor * divisor;
              for (const std::uint64_t value : {near - (near != 0), near, near + 1})
                dividends.push_back(negated ? 0 - value : value);
            }
          }
        }
        std::vector<std::byte> bytes(dividends.size() * 8);
        std::memcpy(bytes.data(), dividends.data(), bytes.size());
        const Call call{Op::average, type, type, type, type, divisor};
        const std::vector<std::byte> zeros(bytes.size());
        std::vector<std::byte> found(bytes.size());
        kernel::reduce(call.op, type, {found.data(), type}, {bytes.data(), type}, {zeros.data(), type},
                       dividends.size(), divisor);
        const std::string difference = arrays::first_difference(type, expected(call, bytes, zeros), found);
        INFO(call.text());
        REQUIRE(difference == "");
      }
    }
  });
}

TEST_CASE("nothing is read or written where there is nothing") {
  for (const DType type : arrays::types) {
    kernel::reduce(Op::sum, type, {nullptr, type}, {nullptr, type}, {nullptr, type}, 0);
    kernel::convert(type, Op::sum, {nullptr, type}, {nullptr, type}, 0);
    const void* none[2] = {nullptr, nullptr};
    kernel::reduce_many(Op::sum, type, {nullptr, type}, none, type, 0);
    if (is_floating(type)) {
      const DType wide = kernel::accumulator(type, Op::sum);
      kernel::scale(type, Op::sum, {nullptr, wide}, {nullptr, type}, 0, 2);
    }
  }
  kernel::copy(nullptr, nullptr, 0);
}

TEST_CASE("calls that cannot be meant are refused") {
  float x = 1;
  const auto f32 = DType::f32;
  const auto sum_into = [&](DType target, DType a, DType b, Op op, std::uint64_t divisor) {
    kernel::reduce(op, f32, {&x, target}, {&x, a}, {&x, b}, 1, divisor);
  };
  CHECK_THROWS_AS(sum_into(DType::f64, f32, f32, Op::sum, 0), InvalidArgument);
  CHECK_THROWS_AS(sum_into(f32, DType::f16, f32, Op::sum, 0), InvalidArgument);
  CHECK_THROWS_AS(sum_into(f32, f32, DType::i32, Op::sum, 0), InvalidArgument);
  CHECK_THROWS_WITH(sum_into(f32, f32, DType::i32, Op::sum, 0), ContainsSubstring("second source"));
  CHECK_THROWS_WITH(sum_into(f32, f32, f32, Op::sum, 2), ContainsSubstring("divisor"));
  CHECK_THROWS_AS(kernel::scale(DType::i32, Op::sum, {&x, DType::i32}, {&x, DType::i32}, 1, 2),
                  InvalidArgument);
  CHECK_THROWS_AS(kernel::scale(DType::f16, Op::sum, {&x, DType::f16}, {&x, DType::f16}, 1, 2),
                  InvalidArgument);
  CHECK_THROWS_AS(kernel::convert(f32, Op::sum, {&x, DType::f16}, {&x, f32}, 1), InvalidArgument);
  CHECK_THROWS_AS(kernel::reduce_many(Op::sum, f32, {&x, f32}, {}, f32, 1), InvalidArgument);
  std::int64_t y = 1;
  const std::uint64_t huge = std::uint64_t{1} << 63U;
  CHECK_THROWS_AS(kernel::convert(DType::i64, Op::average, {&y, DType::i64}, {&y, DType::i64}, 1, huge),
                  InvalidArgument);
}

TEST_CASE("accumulators are as documented") {
  for (const DType type : arrays::types)
    for (const Op op : arrays::ops) CHECK(kernel::accumulator(type, op) == reference::accumulator(type, op));
}
