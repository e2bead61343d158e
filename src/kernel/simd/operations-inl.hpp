// What is done to lanes: the reductions and the division of an average. Compiled once for each instruction
// set.
#if defined(TUTTI_KERNEL_OPERATIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_OPERATIONS_INL
#undef TUTTI_KERNEL_OPERATIONS_INL
#else
#define TUTTI_KERNEL_OPERATIONS_INL
#endif

#include "kernel/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

/// Integers are added as unsigned ones: the same bits, and wrapping is defined.
struct Sum {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      static_cast<void>(d);
      return hn::Add(a, b);
    } else {
      const hn::RebindToUnsigned<D> du;
      return hn::BitCast(d, hn::Add(hn::BitCast(du, a), hn::BitCast(du, b)));
    }
  }
};

/// Of unsigned or floating lanes; signed products have the same bits as unsigned ones.
struct Product {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V a, V b) {
    using T = hn::TFromD<D>;
    if constexpr (std::is_floating_point_v<T>) {
      return hn::Mul(a, b);
    } else {
      return integer(d, a, b);
    }
  }

 private:
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V integer(D d, V a, V b) {
    using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
    const auto product = std::uint64_t{hn::GetLane(a)} * std::uint64_t{hn::GetLane(b)};
    return hn::Set(d, static_cast<T>(product & std::numeric_limits<T>::max()));
#else
    if constexpr (sizeof(T) == 1) {
      const hn::Repartition<std::uint16_t, D> d16;
      const auto a16 = hn::BitCast(d16, a);
      const auto b16 = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, 0xff));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
      return hn::BitCast(d, hn::Or(even, odd));
    } else {
      return hn::Mul(a, b);
    }
#endif
  }
};

/// Minimum or maximum. Floating operands are chosen twice, once with each as the one taken when they do not
/// compare less, which differs only for zeros of two signs and for NaN: the union of the two patterns is then
/// -0 or NaN, the intersection +0. So nothing depends on what an instruction set does with NaN in its own
/// minimum.
template <bool smallest>
struct Extreme {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (!std::is_floating_point_v<hn::TFromD<D>>) {
      return smallest ? hn::Min(a, b) : hn::Max(a, b);
    } else {
      const auto a_less = hn::Lt(a, b);
      const auto b_less = hn::Lt(b, a);
      const V first = smallest ? hn::IfThenElse(a_less, a, b) : hn::IfThenElse(a_less, b, a);
      const V second = smallest ? hn::IfThenElse(b_less, b, a) : hn::IfThenElse(b_less, a, b);
      const V either = hn::Or(first, second);
      const V chosen = smallest ? either : hn::And(first, second);
      const V nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
      return hn::IfThenElse(hn::Eq(either, either), chosen, nan);
    }
  }
};

/// Minimum or maximum of half types without leaving them. Lanes are std::int16_t holding the patterns, whose
/// lower 15 bits are turned over in negative numbers: then integers order as the numbers do, -0 below +0.
template <bool smallest, DType type>
struct HalfExtreme {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V a, V b) {
    constexpr std::int16_t infinity = type == DType::f16 ? 0x7c00 : 0x7f80;
    constexpr std::int16_t quiet_nan = type == DType::f16 ? 0x7e00 : 0x7fc0;
    const V mask = hn::Set(d, std::int16_t{0x7fff});
    const V key_a = hn::Xor(a, hn::And(hn::ShiftRight<15>(a), mask));
    const V key_b = hn::Xor(b, hn::And(hn::ShiftRight<15>(b), mask));
    const V key = smallest ? hn::Min(key_a, key_b) : hn::Max(key_a, key_b);
    const V chosen = hn::Xor(key, hn::And(hn::ShiftRight<15>(key), mask));
    const V magnitude = hn::Max(hn::And(a, mask), hn::And(b, mask));
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, infinity)), hn::Set(d, quiet_nan), chosen);
  }
};

/// v / divisor: a true division of floating lanes; integers are rounded toward zero.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V divide(D d, V v, std::uint64_t divisor) {
  using T = hn::TFromD<D>;
  const T by = static_cast<T>(divisor);
  if constexpr (std::is_floating_point_v<T>) {
    return hn::Div(v, hn::Set(d, by));
  } else {
    alignas(64) std::byte buffer[hn::MaxLanes(d) * sizeof(T)];
    store_lanes(d, v, buffer);
    for (std::size_t i = 0; i < hn::MaxLanes(d); ++i) {
      T lane;
      std::memcpy(&lane, buffer + i * sizeof(T), sizeof lane);
      lane /= by;
      std::memcpy(buffer + i * sizeof(T), &lane, sizeof lane);
    }
    return load_lanes(d, buffer);
  }
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
