// The loops of one half type. Compiled once for each instruction set.
#if defined(TUTTI_KERNEL_HALF_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_HALF_INL
#undef TUTTI_KERNEL_HALF_INL
#else
#define TUTTI_KERNEL_HALF_INL
#endif

#include "kernel/simd/combine-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

template <DType half, class Operation, bool divided>
void combine_half_by(const Job& job) {
  constexpr DType wide = DType::f32;
  constexpr bool brain = half == DType::bf16;
  using Wide = OneVector<float>;
  using Narrowing = std::conditional_t<brain, BrainPairs<false>, Wide>;
  using Narrow = std::conditional_t<brain, BrainPairs<true>, Wide>;
  if (job.mixed) {
    if (job.wide_target) return Loop<half, wide, Wide, Operation, divided, wide>::two(job);
    return Loop<half, half, Narrowing, Operation, divided, wide>::two(job);
  }
  if (job.wide_sources) return Loop<wide, half, Narrowing, Operation, divided>::all(job);
  if (job.wide_target) return Loop<half, wide, Wide, Operation, divided>::all(job);
  return Loop<half, half, Narrow, Operation, divided>::all(job);
}

/// Never called with nothing but wide arrays: that is a reduction of f32.
template <DType half>
void combine_half(const Job& job) {
  switch (job.op) {
    case Op::min: return Loop<half, half, OneVector<std::int16_t>, HalfExtreme<true, half>>::all(job);
    case Op::max: return Loop<half, half, OneVector<std::int16_t>, HalfExtreme<false, half>>::all(job);
    case Op::product: return combine_half_by<half, Product, false>(job);
    case Op::sum:
    case Op::average: break;
  }
  if (job.divisor != 0) return combine_half_by<half, Sum, true>(job);
  combine_half_by<half, Sum, false>(job);
}

template <DType half>
void scale_half(const ScaleJob& job) {
  if (!job.wide_target) return scale_loop<half, half, float>(job);
  scale_loop<half, DType::f32, float>(job);
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
