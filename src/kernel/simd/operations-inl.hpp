// What is done to lanes: the reductions and the division of an average. Compiled once for each instruction
// set.
#if defined(TUTTI_KERNEL_OPERATIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_OPERATIONS_INL
#undef TUTTI_KERNEL_OPERATIONS_INL
#else
#define TUTTI_KERNEL_OPERATIONS_INL
#endif

#include <bit>
#include <cmath>

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

/// What a loop needs to divide by the same number again and again.
template <class T>
struct Divisor {
  T by;
  /// Floating: the reciprocal. Integers: as a double, rounded up.
  std::conditional_t<std::is_floating_point_v<T>, T, double> inverse;
  /// Multiplying by the inverse gives the bits of the division: floating if the divisor is a power of two,
  /// whose reciprocal is exact; integers of up to 50 bits if the divisor has at most 50 too.
  bool by_product;

  explicit Divisor(std::uint64_t divisor) : by(static_cast<T>(divisor)) {
    if constexpr (std::is_floating_point_v<T>) {
      inverse = T{1} / by;
      by_product = std::has_single_bit(divisor);
    } else {
      inverse = std::nextafter(1.0 / static_cast<double>(divisor), 1.0);
      by_product = divisor > 1 && divisor < (std::uint64_t{1} << 50U);
    }
  }
};

/// Lane by lane; kept out of the loops.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V divide_integers(D d, V v, hn::TFromD<D> by) {
  using T = hn::TFromD<D>;
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

/// v / divisor: correctly rounded in floating lanes; integers are rounded toward zero.
///
/// Integers v, |v| < 2^50, become exact doubles. The inverse exceeds 1/d by less than 2^-51.4 of it, so the
/// rounded product is at least the quotient where that is whole (rounding is monotonic), and where it is not,
/// exceeds it by less than 2^-51 of it, hence by less than the 1/d that are missing to the next whole number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V divide(D d, V v, const Divisor<hn::TFromD<D>>& divisor) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_floating_point_v<T>) {
    if (divisor.by_product) return hn::Mul(v, hn::Set(d, divisor.inverse));
    return hn::Div(v, hn::Set(d, divisor.by));
  } else {
#if HWY_TARGET != HWY_SCALAR
    const hn::RebindToSigned<D> di;
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<double, D> df;
    constexpr bool has_sign = std::is_signed_v<T>;
    const auto bits = hn::BitCast(du, v);
    const auto shifted = has_sign ? hn::Add(bits, hn::Set(du, std::uint64_t{1} << 50U)) : bits;
    const bool small = hn::AllTrue(du, hn::Eq(hn::ShiftRight<50 + has_sign>(shifted), hn::Zero(du)));
    if (small && divisor.by_product) {
      const auto product = hn::Mul(hn::ConvertTo(df, hn::BitCast(di, v)), hn::Set(df, divisor.inverse));
      return hn::BitCast(d, hn::ConvertTo(di, product));
    }
#endif
    return divide_integers(d, v, divisor.by);
  }
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
