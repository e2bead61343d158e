// How many vectors hold the elements that are computed together. Compiled once for each instruction set.
#if defined(TUTTI_KERNEL_LAYOUTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_LAYOUTS_INL
#undef TUTTI_KERNEL_LAYOUTS_INL
#else
#define TUTTI_KERNEL_LAYOUTS_INL
#endif

#include "kernel/simd/operations-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

/// One vector of lanes of type T: for everything but what follows.
template <class T>
struct OneVector {
  using Lane = T;
  using D = hn::ScalableTag<Lane>;
  using V = hn::Vec<D>;
  static constexpr std::size_t elements = hn::MaxLanes(D());

  template <DType type>
  static HWY_INLINE V load(const std::byte* p) {
    return HWY_NAMESPACE::load<type>(D(), p);
  }

  template <class Operation>
  static HWY_INLINE V apply(V a, V b) {
    return Operation::apply(D(), a, b);
  }

  static HWY_INLINE V divide(V v, const Divisor<Lane>& by) { return HWY_NAMESPACE::divide(D(), v, by); }

  template <DType type>
  static HWY_INLINE void store(V v, std::byte* p) {
    const D d;
    if constexpr (std::is_floating_point_v<Lane>) v = canonical_nan(d, v);
    HWY_NAMESPACE::store<type>(d, v, p);
  }
};

#if HWY_TARGET == HWY_SCALAR
template <bool interleaved>
using BrainPairs = OneVector<float>;
#else
/// Two vectors of fp32 that become one of bf16. Either all sources and the target are bf16, then one vector
/// has the even elements and one the odd ones, and no element changes its place (`interleaved`); or the
/// vectors follow each other, and their upper halves are gathered at the store.
template <bool interleaved>
struct BrainPairs {
  using Lane = float;
  using D = hn::ScalableTag<float>;

  struct V {
    hn::Vec<D> first, second;
  };

  static constexpr std::size_t elements = 2 * hn::MaxLanes(D());

  template <DType type>
  static HWY_INLINE V load(const std::byte* p) {
    const D d;
    if constexpr (interleaved) {
      static_assert(type == DType::bf16);
      const hn::RebindToUnsigned<D> du;
      const auto pairs = load_lanes(du, p);
      return {hn::BitCast(d, hn::ShiftLeft<16>(pairs)),
              hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xffff0000U)))};
    } else {
      constexpr std::size_t bytes = hn::MaxLanes(D()) * sizeof(Stored<type>);
      return {HWY_NAMESPACE::load<type>(d, p), HWY_NAMESPACE::load<type>(d, p + bytes)};
    }
  }

  template <class Operation>
  static HWY_INLINE V apply(V a, V b) {
    const D d;
    return {Operation::apply(d, a.first, b.first), Operation::apply(d, a.second, b.second)};
  }

  static HWY_INLINE V divide(V v, const Divisor<Lane>& by) {
    const D d;
    return {HWY_NAMESPACE::divide(d, v.first, by), HWY_NAMESPACE::divide(d, v.second, by)};
  }

  template <DType type>
  static HWY_INLINE void store(V v, std::byte* p) {
    static_assert(type == DType::bf16);
    const D d;
    const hn::RebindToUnsigned<D> du;
    const hn::Repartition<std::uint16_t, D> d16;
    const auto first = rounded_bf16(d, canonical_nan(d, v.first));
    const auto second = rounded_bf16(d, canonical_nan(d, v.second));
    if constexpr (interleaved) {
      const auto odd = hn::And(second, hn::Set(du, 0xffff0000U));
      store_lanes(du, hn::Or(odd, hn::ShiftRight<16>(first)), p);
    } else {
      store_lanes(d16, hn::ConcatOdd(d16, hn::BitCast(d16, second), hn::BitCast(d16, first)), p);
    }
  }
};
#endif

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
