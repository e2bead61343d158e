#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "tutti/export.hpp"

namespace tutti {

/// Number of a process in a communicator, 0-based, as in MPI.
using Rank = std::int32_t;

/// Element types of collectives. All are little-endian and packed; f16 is IEEE binary16, bf16 the upper half
/// of an IEEE binary32.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i32, u32, i64, u64 };
inline constexpr std::size_t dtype_count = 10;

/// Reductions.
///
/// - Sums and products of integers wrap. Floating sums and products of half types are accumulated in fp32 and
///   rounded once, at the end.
/// - `average` divides once by the number of contributing ranks, after the last addition and before the last
///   rounding. Integers accumulate in 64 bits and the quotient is rounded toward zero.
/// - `min` and `max` order -0 below +0, and give NaN if either operand is NaN.
enum class Op : std::uint8_t { sum, average, min, max, product };
inline constexpr std::size_t op_count = 5;

/// IEEE binary16 as a bit pattern. Storage only: convert with kernels or your own code.
struct float16 {
  std::uint16_t bits = 0;
  friend bool operator==(float16, float16) = default;
};

/// Upper 16 bits of an IEEE binary32 as a bit pattern. Storage only.
struct bfloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(bfloat16, bfloat16) = default;
};

/// Bytes of one element.
constexpr std::size_t size_of(DType type) noexcept {
  switch (type) {
    case DType::i8:
    case DType::u8: return 1;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
  }
  return 0;
}

constexpr bool is_floating(DType type) noexcept {
  return type == DType::f32 || type == DType::f64 || type == DType::f16 || type == DType::bf16;
}

/// Of integers: those with a sign.
constexpr bool is_signed(DType type) noexcept {
  return type == DType::i8 || type == DType::i32 || type == DType::i64;
}

constexpr bool is_half(DType type) noexcept {
  return type == DType::f16 || type == DType::bf16;
}

/// "f32", "f64", "f16", "bf16", "i8", "u8", "i32", "u32", "i64", "u64".
TUTTI_API std::string_view name_of(DType type) noexcept;
/// "sum", "average", "min", "max", "product".
TUTTI_API std::string_view name_of(Op op) noexcept;
/// The inverse of name_of; accepts also "float", "double", "half", "int8", "uint8", "int32", "uint32",
/// "int64", "uint64", "bfloat16", "fp16", "fp32", "fp64". Throws InvalidArgument that lists the names.
TUTTI_API DType dtype_from(std::string_view name);
/// The inverse of name_of; accepts also "avg" and "prod". Throws InvalidArgument that lists the names.
TUTTI_API Op op_from(std::string_view name);

namespace detail {
template <class T>
constexpr bool always_false = false;

template <class T>
consteval DType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DType::f64;
  } else if constexpr (std::is_same_v<U, float16>) {
    return DType::f16;
  } else if constexpr (std::is_same_v<U, bfloat16>) {
    return DType::bf16;
  } else if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) {
    if constexpr (sizeof(U) == 1) {
      return std::is_signed_v<U> ? DType::i8 : DType::u8;
    } else if constexpr (sizeof(U) == 4) {
      return std::is_signed_v<U> ? DType::i32 : DType::u32;
    } else if constexpr (sizeof(U) == 8) {
      return std::is_signed_v<U> ? DType::i64 : DType::u64;
    } else {
      static_assert(always_false<T>, "tutti has no element type of this size");
    }
  } else {
    static_assert(
        always_false<T>,
        "tutti reduces float, double, tutti::float16, tutti::bfloat16 and integers of 8, 32 or 64 bits");
  }
}
}  // namespace detail

/// The element type that a C++ type stands for; a clear compile error where there is none.
template <class T>
inline constexpr DType dtype_of = detail::dtype_of<T>();

}  // namespace tutti
