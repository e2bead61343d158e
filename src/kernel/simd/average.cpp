#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/simd/average.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include "kernel/simd/combine-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

template <DType type, bool divided>
void combine_widened(const Job& job) {
  constexpr DType wide = std::is_signed_v<Stored<type>> ? DType::i64 : DType::u64;
  using Lanes = OneVector<Stored<wide>>;
  if (job.mixed) {
    if (job.wide_target) return Loop<type, wide, Lanes, Sum, divided, wide>::two(job);
    return Loop<type, type, Lanes, Sum, divided, wide>::two(job);
  }
  if (job.wide_sources) return Loop<wide, type, Lanes, Sum, divided>::few(job);
  if (job.wide_target) return Loop<type, wide, Lanes, Sum, divided>::few(job);
  Loop<type, type, Lanes, Sum, divided>::few(job);
}

template <DType type>
void combine_average_of(const Job& job) {
  if (job.divisor != 0) return combine_widened<type, true>(job);
  combine_widened<type, false>(job);
}

void combine_average_here(DType type, const Job& job) {
  switch (type) {
    case DType::i8: return combine_average_of<DType::i8>(job);
    case DType::u8: return combine_average_of<DType::u8>(job);
    case DType::i32: return combine_average_of<DType::i32>(job);
    case DType::u32: return combine_average_of<DType::u32>(job);
    case DType::i64:
    case DType::u64:
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16: break;
  }
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {

HWY_EXPORT(combine_average_here);

void combine_average(DType type, const Job& job) {
  HWY_DYNAMIC_DISPATCH(combine_average_here)(type, job);
}

}  // namespace tutti::kernel
#endif
