// The kernel of reductions, its own source on the CPU, against the CPU's loops: the same bits.
#include "cuda/kernels/reduce.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "kernel/arithmetic/half.hpp"
#include "kernel/arrays.hpp"
#include "kernel/kernel.hpp"
#include "simt/simt.hpp"
#include "support/catch.hpp"

using namespace tutti;
using simt::DeviceMemory;

namespace {

struct Case {
  DType contribution;
  DType target;
  unsigned ranks = 1;
  std::size_t count = 0;
  std::uint64_t divisor = 0;
  std::size_t shift = 0;  ///< elements that arrays start behind an even place
  std::uint64_t seed = 0;
};

template <DType type, Op op>
void check(const Case& c) {
  INFO(arrays::label(type, op) << " of " << c.ranks << " " << name_of(c.contribution) << " into "
                               << name_of(c.target) << ", divisor " << c.divisor << ", count " << c.count
                               << ", shift " << c.shift);
  const std::size_t width = size_of(c.contribution);
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<const void*> sources;
  cuda::Messages contributions{{}, c.ranks};
  for (unsigned rank = 0; rank < c.ranks; ++rank) {
    const std::vector<std::byte> values = arrays::values(c.contribution, c.count + c.shift, 100 + rank);
    memory.push_back(std::make_unique<DeviceMemory>((c.count + c.shift) * width, 16));
    std::ranges::copy(values, memory.back()->data());
    contributions.of[rank] = memory.back()->data() + c.shift * width;
    sources.push_back(contributions.of[rank]);
  }
  const std::size_t bytes = c.count * size_of(c.target);
  const DeviceMemory target(bytes + c.shift * size_of(c.target), 16);
  std::byte* const to = target.data() + c.shift * size_of(c.target);
  simt::run<cuda::Reduce<type, op>>({.contributions = contributions,
                                     .target = to,
                                     .count = c.count,
                                     .divisor = c.divisor,
                                     .wide_contributions = c.contribution != type,
                                     .wide_target = c.target != type},
                                    {c.seed});
  std::vector<std::byte> expected(bytes);
  kernel::reduce_many(op, type, {expected.data(), c.target}, sources, c.contribution, c.count, c.divisor);
  CHECK(arrays::first_difference(c.target, expected, {to, to + bytes}) == "");
}

template <DType type, Op op>
void check_all() {
  for (const DType contribution : arrays::forms(type, op)) {
    for (const DType target : arrays::forms(type, op)) {
      for (const unsigned ranks : {1U, 2U, 3U, 5U, 8U, 13U, 64U}) {
        Case c{
            .contribution = contribution, .target = target, .ranks = ranks, .count = 300, .seed = ranks % 3};
        check<type, op>(c);
        if (op == Op::average) {
          c.divisor = ranks;
          check<type, op>(c);
        }
      }
      for (const std::size_t count : {0U, 1U, 2U, 3U, 5U, 1023U, 5000U})
        check<type, op>(
            {.contribution = contribution, .target = target, .ranks = 3, .count = count, .shift = count % 4});
    }
  }
}

template <DType type>
void check_ops() {
  check_all<type, Op::sum>();
  check_all<type, Op::average>();
  check_all<type, Op::min>();
  check_all<type, Op::max>();
  check_all<type, Op::product>();
}

template <DType... types>
void check_types() {
  (check_ops<types>(), ...);
}

}  // namespace

TEST_CASE("reductions of floating numbers: the kernel has the CPU's bits") {
  check_types<DType::f32, DType::f64, DType::f16, DType::bf16>();
}

TEST_CASE("reductions of integers: the kernel has the CPU's bits") {
  check_types<DType::i8, DType::u8, DType::i32, DType::u32, DType::i64, DType::u64>();
}

TEST_CASE("half types: all patterns, and every border between them, as by exact arithmetic") {
  std::size_t wrong = 0;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float half = kernel::from_float16(bits);
    const float brain = kernel::from_bfloat16(bits);
    const bool is_nan16 = (bits & 0x7FFFU) > 0x7C00U;
    const bool is_nanb = (bits & 0x7FFFU) > 0x7F80U;
    if (!is_nan16 && static_cast<double>(half) != reference::f16_value(bits)) ++wrong;
    if (!is_nanb && static_cast<double>(brain) != reference::bf16_value(bits)) ++wrong;
    if (kernel::to_float16(half) != (is_nan16 ? 0x7E00 : bits)) ++wrong;
    if (kernel::to_bfloat16(brain) != (is_nanb ? 0x7FC0 : bits)) ++wrong;
    // Half-way to the next one, and the floats beside that.
    const std::uint32_t middle16 = base::bits_of(half) + 0x1000U;
    const std::uint32_t middleb = base::bits_of(brain) + 0x8000U;
    for (const int off : {-1, 0, 1}) {
      const float near16 = base::float_of(middle16 + static_cast<std::uint32_t>(off));
      const float nearb = base::float_of(middleb + static_cast<std::uint32_t>(off));
      if (!is_nan16 && near16 == near16 &&
          kernel::to_float16(near16) != reference::nearest_f16(static_cast<double>(near16)))
        ++wrong;
      if (!is_nanb && nearb == nearb &&
          kernel::to_bfloat16(nearb) != reference::nearest_bf16(static_cast<double>(nearb)))
        ++wrong;
    }
  }
  // fp32 numbers all over binary16's denormals, whose borders are not where those of normal ones are.
  for (std::uint32_t bits = 0x32000000U; bits < 0x39000000U; bits += 4093) {
    const float value = base::float_of(bits);
    if (kernel::to_float16(value) != reference::nearest_f16(static_cast<double>(value))) ++wrong;
  }
  CHECK(wrong == 0);
}
