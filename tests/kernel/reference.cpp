#include "kernel/reference.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace tutti;

namespace reference {
namespace {

/// A binary format with `fraction` bits of fraction and exponents biased by `bias`; 16 bits in all.
struct Format {
  int fraction;
  int bias;
  std::uint16_t infinity;
  std::uint16_t nan;
};

constexpr Format binary16{10, 15, 0x7c00, 0x7e00};
constexpr Format brain16{7, 127, 0x7f80, 0x7fc0};

double value_of(Format format, std::uint16_t bits) {
  const int magnitude = bits & 0x7fff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (magnitude > format.infinity) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.infinity) return sign * std::numeric_limits<double>::infinity();
  const int exponent = magnitude >> format.fraction;
  const int fraction = magnitude & ((1 << format.fraction) - 1);
  const int significand = exponent == 0 ? fraction : fraction + (1 << format.fraction);
  return sign * std::ldexp(significand, std::max(exponent, 1) - format.bias - format.fraction);
}

std::uint16_t nearest(Format format, double value) {
  if (std::isnan(value)) return format.nan;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  value = std::fabs(value);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | format.infinity);
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), 1 - format.bias);
  // In units of the last place; nearbyint rounds half to even.
  const double units = std::nearbyint(std::ldexp(value, format.fraction - exponent));
  // The implicit bit carries into the exponent by itself: units == 2^(fraction+1) is the next binade.
  const auto biased = static_cast<std::uint32_t>(exponent + format.bias - 1) << format.fraction;
  const std::uint32_t pattern = biased + static_cast<std::uint32_t>(units);
  return static_cast<std::uint16_t>(sign | std::min<std::uint32_t>(pattern, format.infinity));
}

template <class T>
T get(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <class T>
void put(T value, std::byte* p) {
  std::memcpy(p, &value, sizeof value);
}

bool has_sign(DType type) {
  return type == DType::i8 || type == DType::i32 || type == DType::i64;
}

Number cut(DType type, std::uint64_t integer) {
  std::byte bytes[8];
  write(type, {0, integer}, bytes);
  return read(type, bytes);
}

double extreme(bool smallest, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) == smallest ? a : b;  // zeros may differ in sign
  return (a < b) == smallest ? a : b;
}

template <class T>
double floating(Op op, T a, T b) {
  switch (op) {
    case Op::sum:
    case Op::average: return static_cast<double>(a + b);
    case Op::product: return static_cast<double>(a * b);
    case Op::min: return extreme(true, static_cast<double>(a), static_cast<double>(b));
    case Op::max: return extreme(false, static_cast<double>(a), static_cast<double>(b));
  }
  return 0;
}

bool less(DType type, std::uint64_t a, std::uint64_t b) {
  return has_sign(type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
}

}  // namespace

double f16_value(std::uint16_t bits) {
  return value_of(binary16, bits);
}

double bf16_value(std::uint16_t bits) {
  return value_of(brain16, bits);
}

std::uint16_t nearest_f16(double value) {
  return nearest(binary16, value);
}

std::uint16_t nearest_bf16(double value) {
  return nearest(brain16, value);
}

Number read(DType type, const std::byte* p) {
  switch (type) {
    case DType::f32: return {static_cast<double>(get<float>(p)), 0};
    case DType::f64: return {get<double>(p), 0};
    case DType::f16: return {f16_value(get<std::uint16_t>(p)), 0};
    case DType::bf16: return {bf16_value(get<std::uint16_t>(p)), 0};
    case DType::i8: return {0, static_cast<std::uint64_t>(std::int64_t{get<std::int8_t>(p)})};
    case DType::u8: return {0, get<std::uint8_t>(p)};
    case DType::i32: return {0, static_cast<std::uint64_t>(std::int64_t{get<std::int32_t>(p)})};
    case DType::u32: return {0, get<std::uint32_t>(p)};
    case DType::i64:
    case DType::u64: return {0, get<std::uint64_t>(p)};
  }
  return {};
}

void write(DType type, Number value, std::byte* p) {
  const bool nan = std::isnan(value.floating);
  switch (type) {
    case DType::f32:
      return put(nan ? 0x7fc00000U : std::bit_cast<std::uint32_t>(static_cast<float>(value.floating)), p);
    case DType::f64: return put(nan ? 0x7ff8000000000000U : std::bit_cast<std::uint64_t>(value.floating), p);
    case DType::f16: return put(nearest_f16(value.floating), p);
    case DType::bf16: return put(nearest_bf16(value.floating), p);
    case DType::i8:
    case DType::u8: return put(static_cast<std::uint8_t>(value.integer & 0xffU), p);
    case DType::i32:
    case DType::u32: return put(static_cast<std::uint32_t>(value.integer & 0xffffffffU), p);
    case DType::i64:
    case DType::u64: return put(value.integer, p);
  }
}

Number apply(Op op, DType wide, Number a, Number b) {
  if (wide == DType::f64) return {floating(op, a.floating, b.floating), 0};
  if (is_floating(wide))
    return {floating(op, static_cast<float>(a.floating), static_cast<float>(b.floating)), 0};
  switch (op) {
    case Op::sum:
    case Op::average: return cut(wide, a.integer + b.integer);
    case Op::product: return cut(wide, a.integer * b.integer);
    case Op::min: return less(wide, b.integer, a.integer) ? b : a;
    case Op::max: return less(wide, a.integer, b.integer) ? b : a;
  }
  return {};
}

Number divide(DType wide, Number a, std::uint64_t divisor) {
  if (wide == DType::f64) return {a.floating / static_cast<double>(divisor), 0};
  if (is_floating(wide)) {
    return {static_cast<double>(static_cast<float>(a.floating) / static_cast<float>(divisor)), 0};
  }
  // Toward zero: the magnitude is divided, then the sign put back.
  const bool negative = has_sign(wide) && (a.integer >> 63U) != 0;
  const std::uint64_t quotient = (negative ? 0 - a.integer : a.integer) / divisor;
  return {0, negative ? 0 - quotient : quotient};
}

DType accumulator(DType type, Op op) {
  if (op == Op::min || op == Op::max) return type;
  if (type == DType::f16 || type == DType::bf16) return DType::f32;
  if (op == Op::average && (type == DType::i8 || type == DType::i32)) return DType::i64;
  if (op == Op::average && (type == DType::u8 || type == DType::u32)) return DType::u64;
  return type;
}

}  // namespace reference
