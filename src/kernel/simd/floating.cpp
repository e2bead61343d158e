#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/simd/floating.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include "kernel/simd/combine-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

template <DType type>
void combine_floating(const Job& job) {
  using Lanes = OneVector<Stored<type>>;
  switch (job.op) {
    case Op::min: return Loop<type, type, Lanes, Extreme<true>>::all(job);
    case Op::max: return Loop<type, type, Lanes, Extreme<false>>::all(job);
    case Op::product: return Loop<type, type, Lanes, Product>::all(job);
    case Op::sum:
    case Op::average: break;
  }
  if (job.divisor != 0) return Loop<type, type, Lanes, Sum, true>::all(job);
  Loop<type, type, Lanes, Sum>::all(job);
}

void combine_f32_here(const Job& job) {
  combine_floating<DType::f32>(job);
}

void combine_f64_here(const Job& job) {
  combine_floating<DType::f64>(job);
}

void scale_f32_here(const ScaleJob& job) {
  scale_loop<DType::f32, DType::f32, float>(job);
}

void scale_f64_here(const ScaleJob& job) {
  scale_loop<DType::f64, DType::f64, double>(job);
}

std::int64_t target_here() {
  return HWY_TARGET;
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {

HWY_EXPORT(combine_f32_here);
HWY_EXPORT(combine_f64_here);
HWY_EXPORT(scale_f32_here);
HWY_EXPORT(scale_f64_here);
HWY_EXPORT(target_here);

void combine_f32(const Job& job) {
  HWY_DYNAMIC_DISPATCH(combine_f32_here)(job);
}

void combine_f64(const Job& job) {
  HWY_DYNAMIC_DISPATCH(combine_f64_here)(job);
}

void scale_f32(const ScaleJob& job) {
  HWY_DYNAMIC_DISPATCH(scale_f32_here)(job);
}

void scale_f64(const ScaleJob& job) {
  HWY_DYNAMIC_DISPATCH(scale_f64_here)(job);
}

std::int64_t running_target() {
  return HWY_DYNAMIC_DISPATCH(target_here)();
}

}  // namespace tutti::kernel
#endif
