#pragma once

#include <cstdint>
#include <type_traits>

#include "tutti/types.hpp"

namespace tutti::kernel {

template <DType>
struct StoredAs;

template <>
struct StoredAs<DType::f32> : std::type_identity<float> {};

template <>
struct StoredAs<DType::f64> : std::type_identity<double> {};

template <>
struct StoredAs<DType::f16> : std::type_identity<std::uint16_t> {};

template <>
struct StoredAs<DType::bf16> : std::type_identity<std::uint16_t> {};

template <>
struct StoredAs<DType::i8> : std::type_identity<std::int8_t> {};

template <>
struct StoredAs<DType::u8> : std::type_identity<std::uint8_t> {};

template <>
struct StoredAs<DType::i32> : std::type_identity<std::int32_t> {};

template <>
struct StoredAs<DType::u32> : std::type_identity<std::uint32_t> {};

template <>
struct StoredAs<DType::i64> : std::type_identity<std::int64_t> {};

template <>
struct StoredAs<DType::u64> : std::type_identity<std::uint64_t> {};

/// Type of one element in memory; half types are bit patterns.
template <DType type>
using Stored = typename StoredAs<type>::type;

}  // namespace tutti::kernel
