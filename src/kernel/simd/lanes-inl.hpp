// How elements get from memory into the lanes in which they are computed, and back. Compiled once for each
// instruction set, hence the include guard that Highway toggles.
#if defined(TUTTI_KERNEL_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_LANES_INL
#undef TUTTI_KERNEL_LANES_INL
#else
#define TUTTI_KERNEL_LANES_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "kernel/arithmetic/stored.hpp"
#include "tutti/types.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Loads from any address. Highway's scalar target dereferences a typed pointer, which may be unaligned.
template <class D>
HWY_INLINE hn::Vec<D> load_lanes(D d, const std::byte* p) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  T value;
  std::memcpy(&value, p, sizeof value);
  return hn::Set(d, value);
#else
  return hn::LoadU(d, reinterpret_cast<const T*>(p));
#endif
}

template <class D>
HWY_INLINE void store_lanes(D d, hn::Vec<D> v, std::byte* p) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  const T value = hn::GetLane(v);
  std::memcpy(p, &value, sizeof value);
  static_cast<void>(d);
#else
  hn::StoreU(v, d, reinterpret_cast<T*>(p));
#endif
}

/// Positive quiet NaN with only the top bit of the mantissa set wherever v is NaN.
template <class D>
HWY_INLINE hn::Vec<D> canonical_nan(D d, hn::Vec<D> v) {
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::Eq(v, v), v, nan);
}

/// Half types as 32-bit lanes: the bit pattern in the lower half of each lane.
template <class DF>
HWY_INLINE auto load_patterns(DF df, const std::byte* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::RebindToUnsigned<DF> d32;
  static_cast<void>(df);
  return hn::PromoteTo(d32, load_lanes(d16, p));
}

template <class DF, class V>
HWY_INLINE void store_patterns(DF df, V patterns, std::byte* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  static_cast<void>(df);
  store_lanes(d16, hn::TruncateTo(d16, patterns), p);
}

// Vector instructions for binary16 exist from AVX2 on (F16C). Elsewhere integer arithmetic gives the same
// bits.
#define TUTTI_KERNEL_NATIVE_F16 (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)

template <class DF>
HWY_INLINE hn::Vec<DF> load_f16(DF df, const std::byte* p) {
#if TUTTI_KERNEL_NATIVE_F16
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(df, hn::BitCast(dh, load_lanes(d16, p)));
#else
  const hn::RebindToUnsigned<DF> du;
  const auto bits = load_patterns(df, p);
  const auto exponent_mask = hn::Set(du, 0x7c00U << 13);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffU)));
  const auto exponent = hn::And(magnitude, exponent_mask);
  const auto normal = hn::Add(magnitude, hn::Set(du, (127U - 15U) << 23));
  const auto special = hn::Add(normal, hn::Set(du, (128U - 16U) << 23));
  // A denormal m·2^-24 is (2^-14 + m·2^-24) - 2^-14, which fp32 computes exactly.
  const auto shifted = hn::BitCast(df, hn::Add(normal, hn::Set(du, 1U << 23)));
  const auto denormal = hn::BitCast(du, hn::Sub(shifted, hn::BitCast(df, hn::Set(du, 113U << 23))));
  auto result = hn::IfThenElse(hn::Eq(exponent, exponent_mask), special, normal);
  result = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), denormal, result);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000U)));
  return hn::BitCast(df, hn::Or(result, sign));
#endif
}

/// magnitude < limit ? below : other, for magnitudes without the sign bit.
template <std::int32_t limit, class DU, class VU = hn::Vec<DU>>
HWY_INLINE VU if_below(DU du, VU magnitude, VU below, VU other) {
  const hn::RebindToSigned<DU> di;
  const auto less = hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, limit));
  return hn::IfThenElse(hn::RebindMask(du, less), below, other);
}

/// Rounds to nearest even; v holds no NaN but the canonical one.
template <class DF>
HWY_INLINE void store_f16(DF df, hn::Vec<DF> v, std::byte* p) {
#if TUTTI_KERNEL_NATIVE_F16
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  store_lanes(d16, hn::BitCast(d16, hn::DemoteTo(dh, v)), p);
  static_cast<void>(df);
#else
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::BitCast(du, v);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffU));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1U));
  // Exponent moved to the new bias; half a unit less one, plus one if odd, carries where the value rounds up.
  const auto biased = hn::Sub(hn::Add(magnitude, hn::Add(odd, hn::Set(du, 0xfffU))), hn::Set(du, 112U << 23));
  const auto normal = hn::ShiftRight<13>(biased);
  // Adding 0.5 puts the last bit of a binary16 denormal at the last bit of the fp32 sum, which rounds.
  const auto half = hn::Set(df, 0.5F);
  const auto sum = hn::Add(hn::BitCast(df, magnitude), half);
  const auto denormal = hn::Sub(hn::BitCast(du, sum), hn::BitCast(du, half));
  auto result = if_below<0x38800000>(du, magnitude, denormal, normal);         // 2^-14
  result = if_below<0x47800000>(du, magnitude, result, hn::Set(du, 0x7c00U));  // 65536
  result = if_below<0x7f800001>(du, magnitude, result, hn::Set(du, 0x7e00U));  // NaN
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000U));
  store_patterns(df, hn::Or(result, sign), p);
#endif
}

template <class DF>
HWY_INLINE hn::Vec<DF> load_bf16(DF df, const std::byte* p) {
  return hn::BitCast(df, hn::ShiftLeft<16>(load_patterns(df, p)));
}

/// The upper half of each lane is v rounded to nearest even; v holds no NaN but the canonical one, which the
/// carry does not reach.
template <class DF>
HWY_INLINE auto rounded_bf16(DF df, hn::Vec<DF> v) {
  const hn::RebindToUnsigned<DF> du;
  static_cast<void>(df);
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  return hn::Add(hn::Add(bits, hn::Set(du, 0x7fffU)), odd);
}

template <class DF>
HWY_INLINE void store_bf16(DF df, hn::Vec<DF> v, std::byte* p) {
  store_patterns(df, hn::ShiftRight<16>(rounded_bf16(df, v)), p);
}

/// Integers of 8 or 32 bits in 64-bit lanes.
template <DType type, class D>
HWY_INLINE hn::Vec<D> load_integer(D d, const std::byte* p) {
  using Narrow = Stored<type>;
  const hn::Rebind<Narrow, D> narrow;
  if constexpr (sizeof(Narrow) == 4) {
    return hn::PromoteTo(d, load_lanes(narrow, p));
  } else {
    using Middle = std::conditional_t<std::is_signed_v<Narrow>, std::int32_t, std::uint32_t>;
    const hn::Rebind<Middle, D> middle;
    return hn::PromoteTo(d, hn::PromoteTo(middle, load_lanes(narrow, p)));
  }
}

template <DType type, class D>
HWY_INLINE void store_integer(D d, hn::Vec<D> v, std::byte* p) {
  using Narrow = std::make_unsigned_t<Stored<type>>;
  const hn::Rebind<Narrow, D> narrow;
  const hn::RebindToUnsigned<D> du;
  static_cast<void>(d);
  store_lanes(narrow, hn::TruncateTo(narrow, hn::BitCast(du, v)), p);
}

/// Lanes(d) elements of `type` at p, as lanes of d.
template <DType type, class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* p) {
  using Lane = hn::TFromD<D>;
  if constexpr (sizeof(Stored<type>) == sizeof(Lane)) {
    return load_lanes(d, p);
  } else if constexpr (type == DType::f16) {
    return load_f16(d, p);
  } else if constexpr (type == DType::bf16) {
    return load_bf16(d, p);
  } else {
    return load_integer<type>(d, p);
  }
}

/// The inverse of load, with one rounding where the type is narrower than the lanes. Integers wrap.
template <DType type, class D>
HWY_INLINE void store(D d, hn::Vec<D> v, std::byte* p) {
  using Lane = hn::TFromD<D>;
  if constexpr (sizeof(Stored<type>) == sizeof(Lane)) {
    store_lanes(d, v, p);
  } else if constexpr (type == DType::f16) {
    store_f16(d, v, p);
  } else if constexpr (type == DType::bf16) {
    store_bf16(d, v, p);
  } else {
    store_integer<type>(d, v, p);
  }
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
