#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/simd/bfloat16.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include "kernel/simd/half-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

void combine_bf16_here(const Job& job) {
  combine_half<DType::bf16>(job);
}

void scale_bf16_here(const ScaleJob& job) {
  scale_half<DType::bf16>(job);
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {

HWY_EXPORT(combine_bf16_here);
HWY_EXPORT(scale_bf16_here);

void combine_bf16(const Job& job) {
  HWY_DYNAMIC_DISPATCH(combine_bf16_here)(job);
}

void scale_bf16(const ScaleJob& job) {
  HWY_DYNAMIC_DISPATCH(scale_bf16_here)(job);
}

}  // namespace tutti::kernel
#endif
