#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuda/kernels/cta.hpp"
#include "kernel/arithmetic/half.hpp"
#include "kernel/arithmetic/stored.hpp"
#include "tutti/types.hpp"

/// Elements of collectives as kernels compute with them: what kernel/kernel.hpp lays down.
namespace tutti::cuda {

using kernel::Stored;

/// What values of a type are while they are computed with: fp32 for half types, 64 bits for averages of
/// integers.
template <DType type, Op op>
using Lane = std::conditional_t<
    is_half(type), float,
    std::conditional_t<op == Op::average && !is_floating(type),
                       std::conditional_t<is_signed(type), std::int64_t, std::uint64_t>, Stored<type>>>;

template <DType type, class T>
TUTTI_DEVICE T widened(Stored<type> stored) {
  if constexpr (type == DType::f16) return kernel::from_float16(stored);
  if constexpr (type == DType::bf16) return kernel::from_bfloat16(stored);
  return static_cast<T>(stored);
}

template <class T>
TUTTI_DEVICE T canonical_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value == value ? value : std::numeric_limits<T>::quiet_NaN();
  return value;
}

template <DType type, class T>
TUTTI_DEVICE Stored<type> narrowed(T value) {
  if constexpr (type == DType::f16) return kernel::to_float16(value);
  if constexpr (type == DType::bf16) return kernel::to_bfloat16(value);
  return static_cast<Stored<type>>(canonical_nan(value));
}

/// Whether a floating number has its sign bit set.
template <class T>
TUTTI_DEVICE bool is_negative(T value) {
#ifdef __CUDA_ARCH__
  return signbit(value);
#else
  return __builtin_signbit(value) != 0;
#endif
}

/// -0 is below +0; NaN if either is NaN.
template <bool smallest, class T>
TUTTI_DEVICE T extreme(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return is_negative(a) == smallest ? a : b;
  }
  return (a < b) == smallest ? a : b;
}

/// a op b; integers wrap.
template <Op op, class T>
TUTTI_DEVICE T combined(T a, T b) {
  if constexpr (op == Op::min || op == Op::max) return extreme<op == Op::min>(a, b);
  if constexpr (std::is_floating_point_v<T>) {
    return op == Op::product ? a * b : a + b;
  } else {
    // 64 bits without a sign: their overflow is defined, and their low bits are right for all.
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return static_cast<T>(op == Op::product ? x * y : x + y);
  }
}

/// Four elements in one access where they lie so.
template <class T>
struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) FourOf {
  T v[4];
};

template <class T>
TUTTI_DEVICE FourOf<T> load_four_of(const void* array, std::uint64_t at, unsigned valid) {
  const T* from = static_cast<const T*>(array) + at;
  if (valid == 4 && reinterpret_cast<std::uintptr_t>(from) % alignof(FourOf<T>) == 0)
    return *reinterpret_cast<const FourOf<T>*>(from);
  FourOf<T> four{};
  for (unsigned j = 0; j < 4; ++j) {
    if (j < valid) four.v[j] = from[j];
  }
  return four;
}

template <class T>
TUTTI_DEVICE void store_four_of(void* array, std::uint64_t at, const FourOf<T>& four, unsigned valid) {
  T* to = static_cast<T*>(array) + at;
  if (valid == 4 && reinterpret_cast<std::uintptr_t>(to) % alignof(FourOf<T>) == 0) {
    *reinterpret_cast<FourOf<T>*>(to) = four;
    return;
  }
  for (unsigned j = 0; j < 4; ++j) {
    if (j < valid) to[j] = four.v[j];
  }
}

}  // namespace tutti::cuda
