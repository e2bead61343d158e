#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/simd/integer.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include "kernel/simd/combine-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

/// Sums and products: of signed integers too, which have the same bits.
template <DType type>
void combine_modular(const Job& job) {
  using Lanes = OneVector<Stored<type>>;
  if (job.op == Op::product) return Loop<type, type, Lanes, Product>::all(job);
  Loop<type, type, Lanes, Sum>::all(job);
}

template <DType type, DType as_unsigned>
void combine_ordered(const Job& job) {
  using Lanes = OneVector<Stored<type>>;
  switch (job.op) {
    case Op::min: return Loop<type, type, Lanes, Extreme<true>>::all(job);
    case Op::max: return Loop<type, type, Lanes, Extreme<false>>::all(job);
    case Op::sum:
    case Op::average:
    case Op::product: break;
  }
  if constexpr (sizeof(Stored<type>) == 8) {
    if (job.divisor != 0) return Loop<type, type, Lanes, Sum, true>::few(job);
  }
  combine_modular<as_unsigned>(job);
}

void combine_integer_here(DType type, const Job& job) {
  switch (type) {
    case DType::i8: return combine_ordered<DType::i8, DType::u8>(job);
    case DType::u8: return combine_ordered<DType::u8, DType::u8>(job);
    case DType::i32: return combine_ordered<DType::i32, DType::u32>(job);
    case DType::u32: return combine_ordered<DType::u32, DType::u32>(job);
    case DType::i64: return combine_ordered<DType::i64, DType::u64>(job);
    case DType::u64: return combine_ordered<DType::u64, DType::u64>(job);
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

HWY_EXPORT(combine_integer_here);

void combine_integer(DType type, const Job& job) {
  HWY_DYNAMIC_DISPATCH(combine_integer_here)(type, job);
}

}  // namespace tutti::kernel
#endif
