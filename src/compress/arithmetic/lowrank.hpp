#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"

namespace tutti::compress {

/// The products of low-rank approximation, in the one order of adding that every loop and kernel keeps. A
/// matrix M is m × n, row by row; factors are P (m × r, row by row) and Q (r rows of n, that is, transposed).
/// Every product and every sum is rounded.

/// A dot product has so many sums, of every so-many-th element, added by halves at the end.
inline constexpr std::size_t dot_sums = 16;

TUTTI_HD inline float add_by_halves(std::array<float, dot_sums>& sums) noexcept {
  for (std::size_t half = dot_sums / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

/// An element of M Q: a row of M times a row of the transposed Q.
TUTTI_HD inline float dot(const float* a, const float* b, std::size_t count) noexcept {
  std::array<float, dot_sums> sums{};
  for (std::size_t i = 0; i < count; ++i) sums[i % dot_sums] += a[i] * b[i];
  return add_by_halves(sums);
}

/// An element of Mᵀ P: `sum` after rows from the first to the last.
TUTTI_HD inline float accumulate(float sum, const float* m, std::size_t m_stride, const float* p,
                                 std::size_t p_stride, std::size_t rows) noexcept {
  for (std::size_t i = 0; i < rows; ++i) sum += m[i * m_stride] * p[i * p_stride];
  return sum;
}

/// An element of P Qᵀ.
TUTTI_HD inline float combine(const float* p, const float* q, std::size_t q_stride,
                              std::size_t rank) noexcept {
  float sum = p[0] * q[0];
  for (std::size_t c = 1; c < rank; ++c) sum += p[c] * q[c * q_stride];
  return sum;
}

/// From -1 to 1, 1 excluded, exact.
TUTTI_HD inline float centered(std::uint32_t draw) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(draw) >> 8) * 0x1p-23F;
}

}  // namespace tutti::compress
