#include "conformance/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/canonical.hpp"
#include "base/random.hpp"

namespace tutti::conformance {
namespace {

// Half types by the compiler's own arithmetic and by the definition of bf16, not by the kernels.
__extension__ using Native16 = _Float16;

float widen(float16 x) {
  return static_cast<float>(std::bit_cast<Native16>(x.bits));
}

float widen(bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16U);
}

template <class T>
T narrow(float x) {
  if constexpr (std::is_same_v<T, float16>) {
    return {std::bit_cast<std::uint16_t>(static_cast<Native16>(x))};
  } else {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
  }
}

template <class T>
constexpr bool is_half_type = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// Element, and what its sums are kept in.
template <class T>
struct Arithmetic {
  using Wide = std::conditional_t<is_half_type<T>, float, T>;
  using Total =
      std::conditional_t<std::is_integral_v<T>,
                         std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, Wide>;

  static Wide load(T x) {
    if constexpr (is_half_type<T>) {
      return widen(x);
    } else {
      return x;
    }
  }

  static T store(Wide x) {
    if constexpr (is_half_type<T>) {
      return narrow<T>(x);
    } else {
      return x;
    }
  }
};

template <class A>
A wrapping(Op op, A a, A b) {
  using U = std::make_unsigned_t<std::conditional_t<(sizeof(A) < 4), std::int64_t, A>>;
  const auto x = static_cast<U>(a);
  const auto y = static_cast<U>(b);
  return static_cast<A>(op == Op::product ? x * y : x + y);
}

template <class A>
A combine(Op op, A a, A b) {
  if (op == Op::min) return std::min(a, b);
  if (op == Op::max) return std::max(a, b);
  if constexpr (std::is_integral_v<A>) {
    return wrapping(op, a, b);
  } else {
    return op == Op::product ? a * b : a + b;
  }
}

template <class T>
T element(const Case& test, Rank rank, std::size_t index) {
  // One mixing step instead of a generator: these numbers are most of what the suite computes.
  const std::uint64_t bits =
      base::mix(base::mix(test.seed * 0x10001 + static_cast<std::uint64_t>(rank)) + index);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    using Wide = typename Arithmetic<T>::Wide;
    double value = static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-62;  // in [-2, 2)
    if (test.exact && test.op == Op::product) {
      constexpr double factors[] = {1, -1, 2, 0.5};
      value = factors[bits % 4];
    } else if (test.exact) {
      value = static_cast<double>(bits % 17) - 8;
    }
    return Arithmetic<T>::store(static_cast<Wide>(value));
  }
}

template <class T>
T reduced_element(const Case& test, Rank ranks, std::size_t index) {
  using A = Arithmetic<T>;
  const auto value = [&](std::uint32_t rank) {
    auto x = A::load(element<T>(test, static_cast<Rank>(rank), index));
    if constexpr (!std::is_integral_v<T>) {
      if (test.prescale != 1.0) x *= static_cast<typename A::Wide>(test.prescale);
    }
    return x;
  };
  const auto p = static_cast<std::uint32_t>(ranks);
  if (test.op == Op::average) {
    using Total = typename A::Total;
    const Total sum = base::canonical_sum(
        p, [&](std::uint32_t r) { return static_cast<Total>(value(r)); },
        [](Total a, Total b) { return combine(Op::sum, a, b); });
    return A::store(static_cast<typename A::Wide>(sum / static_cast<Total>(p)));
  }
  using Wide = typename A::Wide;
  return A::store(base::canonical_sum(p, value, [&](Wide a, Wide b) { return combine(test.op, a, b); }));
}

/// Calls f with a value of the C++ type of `type`.
template <class F>
auto dispatch(DType type, const F& f) {
  switch (type) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::f16: return f(float16{});
    case DType::bf16: return f(bfloat16{});
    case DType::i8: return f(std::int8_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u64: return f(std::uint64_t{});
  }
  return f(float{});
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
double unit_roundoff() {
  if constexpr (std::is_same_v<T, float16>) {
    return 0x1p-11;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return 0x1p-8;
  } else if constexpr (std::is_integral_v<T>) {
    return 0;
  } else {
    return static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  }
}

}  // namespace

std::vector<std::byte> contribution(const Case& test, Rank rank, std::size_t count) {
  return dispatch(test.type, [&](auto kind) {
    using T = decltype(kind);
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = element<T>(test, rank, i);
    return bytes_of(values);
  });
}

std::vector<std::byte> reduced(const Case& test, Rank ranks, std::size_t count) {
  return dispatch(test.type, [&](auto kind) {
    using T = decltype(kind);
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = reduced_element<T>(test, ranks, i);
    return bytes_of(values);
  });
}

template <class T>
constexpr double smallest() {
  if constexpr (std::is_same_v<T, float16>) {
    return 0x1p-24;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return 0x1p-133;
  } else {
    return static_cast<double>(std::numeric_limits<T>::denorm_min());
  }
}

double order_error(const Case& test, Rank ranks, std::size_t first, std::size_t count, const std::byte* found,
                   const std::byte* expected) {
  return dispatch(test.type, [&](auto kind) {
    using T = decltype(kind);
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      T a;
      T b;
      std::memcpy(&a, found + i * sizeof(T), sizeof(T));
      std::memcpy(&b, expected + i * sizeof(T), sizeof(T));
      const auto x = static_cast<double>(Arithmetic<T>::load(a));
      const auto y = static_cast<double>(Arithmetic<T>::load(b));
      if (x == y) continue;
      double scale = test.op == Op::product ? std::abs(y) : 0;
      for (Rank r = 0; r < ranks && test.op != Op::product; ++r) {
        scale += std::abs(static_cast<double>(Arithmetic<T>::load(element<T>(test, r, first + i))) *
                          test.prescale);
      }
      // Wide partial sums of half types, plus one rounding of each result.
      const double wide = is_half_type<T> ? 0x1p-24 : unit_roundoff<T>();
      // Close to zero the distance between numbers is no part of them any more.
      const double allowed = 2 * (wide * ranks * scale + unit_roundoff<T>() * std::abs(y)) + smallest<T>();
      worst =
          std::max(worst, allowed > 0 ? std::abs(x - y) / allowed : std::numeric_limits<double>::infinity());
    }
    return worst;
  });
}

std::vector<std::size_t> uneven_counts(const Case& test, Rank ranks) {
  base::Random random(test.seed, 99);
  std::vector<std::size_t> counts;
  for (Rank r = 0; r < ranks; ++r)
    counts.push_back(random.below(4) == 0 ? 0 : random.below(2 * test.count + 1));
  return counts;
}

}  // namespace tutti::conformance
