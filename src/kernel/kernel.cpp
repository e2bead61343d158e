#include "kernel/kernel.hpp"

#include <array>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "kernel/simd/job.hpp"

namespace tutti::kernel {
namespace {

[[noreturn]] void wrong_type(const char* call, const char* array, DType given, Op op, DType type) {
  const DType wide = accumulator(type, op);
  base::fail<InvalidArgument>(
      "kernel::{}: the {} of a {} of {} is of type {}; pass {} or {}, the type of its partial results", call,
      array, name_of(op), name_of(type), name_of(given), name_of(type), name_of(wide));
}

void require_type(const char* call, const char* array, DType given, Op op, DType type) {
  if (given != type && given != accumulator(type, op)) wrong_type(call, array, given, op, type);
}

void require_divisor(const char* call, Op op, DType type, std::uint64_t divisor) {
  if (divisor == 0) return;
  base::require(op == Op::average, "kernel::{}: a {} is not divided, but divisor is {}; pass 0", call,
                name_of(op), divisor);
  base::require(!is_signed(type) || divisor <= std::uint64_t{std::numeric_limits<std::int64_t>::max()},
                "kernel::{}: the divisor {} of an average of {} does not fit its accumulator i64", call,
                divisor, name_of(type));
}

/// Chooses the loops. `type` is the element type that job.wide_* refer to.
void run(DType type, Job job) {
  const DType wide = accumulator(type, job.op);
  if (wide != type && job.wide_sources && job.wide_target) {  // then nothing is left of the narrow type
    type = wide;
    job.wide_sources = job.wide_target = false;
  }
  switch (type) {
    case DType::f32: return combine_f32(job);
    case DType::f64: return combine_f64(job);
    case DType::f16: return combine_f16(job);
    case DType::bf16: return combine_bf16(job);
    case DType::i8:
    case DType::u8:
    case DType::i32:
    case DType::u32:
      if (job.op == Op::average) return combine_average(type, job);
      return combine_integer(type, job);
    case DType::i64:
    case DType::u64: return combine_integer(type, job);
  }
}

}  // namespace

DType accumulator(DType type, Op op) noexcept {
  if (op == Op::min || op == Op::max) return type;
  if (is_half(type)) return DType::f32;
  if (op != Op::average || is_floating(type)) return type;
  return is_signed(type) ? DType::i64 : DType::u64;
}

void reduce(Op op, DType type, Target target, Source a, Source b, std::size_t count, std::uint64_t divisor) {
  require_type("reduce", "target", target.type, op, type);
  require_type("reduce", "first source", a.type, op, type);
  require_type("reduce", "second source", b.type, op, type);
  require_divisor("reduce", op, type, divisor);
  if (count == 0) return;
  const bool mixed = a.type != b.type;
  std::array<const void*, 2> sources{a.data, b.data};
  if (mixed && a.type != type) std::swap(sources[0], sources[1]);
  run(type, {.op = op,
             .wide_sources = !mixed && a.type != type,
             .wide_target = target.type != type,
             .mixed = mixed,
             .sources = sources.data(),
             .source_count = 2,
             .target = target.data,
             .count = count,
             .divisor = divisor});
}

void reduce_many(Op op, DType type, Target target, std::span<const void* const> contributions,
                 DType contribution_type, std::size_t count, std::uint64_t divisor) {
  require_type("reduce_many", "target", target.type, op, type);
  require_type("reduce_many", "array of contributions", contribution_type, op, type);
  require_divisor("reduce_many", op, type, divisor);
  base::require(!contributions.empty(), "kernel::reduce_many: no contributions; pass at least one");
  base::require(contributions.size() <= std::numeric_limits<std::uint32_t>::max(),
                "kernel::reduce_many: {} contributions; at most 2^32 - 1 can be added at once",
                contributions.size());
  if (contributions.size() == 1)
    return convert(type, op, target, {contributions[0], contribution_type}, count, divisor);
  if (count == 0) return;
  run(type, {.op = op,
             .wide_sources = contribution_type != type,
             .wide_target = target.type != type,
             .sources = contributions.data(),
             .source_count = static_cast<std::uint32_t>(contributions.size()),
             .target = target.data,
             .count = count,
             .divisor = divisor});
}

void convert(DType type, Op op, Target target, Source source, std::size_t count, std::uint64_t divisor) {
  require_type("convert", "target", target.type, op, type);
  require_type("convert", "source", source.type, op, type);
  require_divisor("convert", op, type, divisor);
  if (count == 0) return;
  if (target.type == source.type && divisor == 0) {
    if (target.data != source.data) copy(target.data, source.data, count * size_of(source.type));
    return;
  }
  const void* data = source.data;
  // A product of one is a sum of one.
  run(type, {.op = op == Op::product ? Op::sum : op,
             .wide_sources = source.type != type,
             .wide_target = target.type != type,
             .sources = &data,
             .source_count = 1,
             .target = target.data,
             .count = count,
             .divisor = divisor});
}

void scale(DType type, Op op, Target target, Source source, std::size_t count, double factor) {
  const DType wide = accumulator(type, op);
  base::require(is_floating(type), "kernel::scale: {} cannot be scaled, only floating types can",
                name_of(type));
  base::require(target.type == wide,
                "kernel::scale: the target is of type {}; expected {}, the accumulator of a {} of {}",
                name_of(target.type), name_of(wide), name_of(op), name_of(type));
  require_type("scale", "source", source.type, op, type);
  if (count == 0) return;
  const DType narrow = source.type == wide ? wide : type;
  const ScaleJob job{.wide_target = target.type != narrow,
                     .source = source.data,
                     .target = target.data,
                     .count = count,
                     .factor = factor};
  switch (narrow) {
    case DType::f32: return scale_f32(job);
    case DType::f64: return scale_f64(job);
    case DType::f16: return scale_f16(job);
    case DType::bf16: return scale_bf16(job);
    case DType::i8:
    case DType::u8:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64: break;
  }
}

}  // namespace tutti::kernel
