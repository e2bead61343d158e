#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/simd/lowrank.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "compress/arithmetic/lowrank.hpp"
#include "compress/simd/lowrank.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

/// Columns of a factor that one pass over a row takes: their sums fit in the registers of AVX2.
constexpr std::size_t most_at_once = 4;

/// Calls with the number of columns as a constant, for up to most_at_once of them at a time.
template <class Call>
HWY_INLINE void by_columns(std::size_t rank, const Call& call) {
  for (std::size_t c = 0; c < rank; c += most_at_once) {
    switch (std::min(rank - c, most_at_once)) {
      case 1: call(c, std::integral_constant<std::size_t, 1>()); break;
      case 2: call(c, std::integral_constant<std::size_t, 2>()); break;
      case 3: call(c, std::integral_constant<std::size_t, 3>()); break;
      default: call(c, std::integral_constant<std::size_t, most_at_once>()); break;
    }
  }
}

/// p[c] = row · q[c], for `Columns` columns. First += in, if `in` is there.
template <std::size_t Columns>
HWY_INLINE void dots(const float* in, float* row, std::size_t count, const float* q, std::size_t stride,
                     float* p) {
  const Floats d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  constexpr std::size_t vectors = dot_sums / lanes;
  hn::Vec<Floats> sums[Columns][vectors];
  for (auto& of_column : sums) {
    for (auto& sum : of_column) sum = hn::Zero(d);
  }
  std::size_t j = 0;
  for (; j + dot_sums <= count; j += dot_sums) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t at = j + v * lanes;
      auto x = hn::LoadU(d, row + at);
      if (in != nullptr) {
        x = hn::Add(hn::LoadU(d, in + at), x);
        hn::StoreU(x, d, row + at);
      }
      for (std::size_t c = 0; c < Columns; ++c)
        sums[c][v] = hn::Add(sums[c][v], hn::Mul(x, hn::LoadU(d, q + c * stride + at)));
    }
  }
  for (std::size_t k = j; in != nullptr && k < count; ++k) row[k] = in[k] + row[k];
  for (std::size_t c = 0; c < Columns; ++c) {
    std::array<float, dot_sums> of_column;
    for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(sums[c][v], d, of_column.data() + v * lanes);
    for (std::size_t k = j; k < count; ++k) of_column[k - j] += row[k] * q[c * stride + k];
    p[c] = add_by_halves(of_column);
  }
}

void add_and_project_here(const LowRank& shape, const float* in, float* matrix, const float* q, float* p) {
  for (std::size_t i = 0; i < shape.rows; ++i) {
    const float* from = in + i * shape.columns;
    float* row = matrix + i * shape.columns;
    by_columns(shape.rank, [&](std::size_t c, auto columns) {
      dots<decltype(columns)::value>(c == 0 ? from : nullptr, row, shape.columns, q + c * shape.columns,
                                     shape.columns, p + i * shape.rank + c);
    });
  }
}

/// Rows that one pass over Q takes, so that Q is not written for each of them.
constexpr std::size_t rows_at_once = 8;

/// q[c] += rows of the matrix, `count` of them, times their elements of P.
template <std::size_t Columns>
HWY_INLINE void add_rows(const LowRank& shape, const float* matrix, std::size_t count, const float* p,
                         float* q) {
  const Floats d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t j = 0;
  for (; j + lanes <= shape.columns; j += lanes) {
    hn::Vec<Floats> sums[Columns];
    for (std::size_t c = 0; c < Columns; ++c) sums[c] = hn::LoadU(d, q + c * shape.columns + j);
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = hn::LoadU(d, matrix + i * shape.columns + j);
      for (std::size_t c = 0; c < Columns; ++c)
        sums[c] = hn::Add(sums[c], hn::Mul(x, hn::Set(d, p[i * shape.rank + c])));
    }
    for (std::size_t c = 0; c < Columns; ++c) hn::StoreU(sums[c], d, q + c * shape.columns + j);
  }
  for (; j < shape.columns; ++j) {
    for (std::size_t c = 0; c < Columns; ++c) {
      float& sum = q[c * shape.columns + j];
      sum = accumulate(sum, matrix + j, shape.columns, p + c, shape.rank, count);
    }
  }
}

void project_back_here(const LowRank& shape, const float* matrix, const float* p, float* q) {
  std::fill_n(q, shape.rank * shape.columns, 0.0F);
  for (std::size_t i = 0; i < shape.rows; i += rows_at_once) {
    const std::size_t count = std::min(rows_at_once, shape.rows - i);
    by_columns(shape.rank, [&](std::size_t c, auto columns) {
      add_rows<decltype(columns)::value>(shape, matrix + i * shape.columns, count, p + i * shape.rank + c,
                                         q + c * shape.columns);
    });
  }
}

template <Into How>
HWY_INLINE void expand_row(const LowRank& shape, const float* p, const float* q, float* row) {
  const Floats d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  std::size_t j = 0;
  for (; j + lanes <= shape.columns; j += lanes) {
    auto sum = hn::Mul(hn::Set(d, p[0]), hn::LoadU(d, q + j));
    for (std::size_t c = 1; c < shape.rank; ++c)
      sum = hn::Add(sum, hn::Mul(hn::Set(d, p[c]), hn::LoadU(d, q + c * shape.columns + j)));
    if constexpr (How == Into::add) sum = hn::Add(hn::LoadU(d, row + j), sum);
    if constexpr (How == Into::subtract) sum = hn::Sub(hn::LoadU(d, row + j), sum);
    hn::StoreU(sum, d, row + j);
  }
  for (; j < shape.columns; ++j) {
    const float sum = combine(p, q + j, shape.columns, shape.rank);
    if constexpr (How == Into::set) row[j] = sum;
    if constexpr (How == Into::add) row[j] += sum;
    if constexpr (How == Into::subtract) row[j] -= sum;
  }
}

void expand_here(const LowRank& shape, Into into, const float* p, const float* q, float* matrix) {
  for (std::size_t i = 0; i < shape.rows; ++i) {
    float* row = matrix + i * shape.columns;
    const float* of_row = p + i * shape.rank;
    switch (into) {
      case Into::set: expand_row<Into::set>(shape, of_row, q, row); break;
      case Into::add: expand_row<Into::add>(shape, of_row, q, row); break;
      case Into::subtract: expand_row<Into::subtract>(shape, of_row, q, row); break;
    }
  }
}

}  // namespace tutti::compress::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::compress::simd {

HWY_EXPORT(add_and_project_here);
HWY_EXPORT(project_back_here);
HWY_EXPORT(expand_here);

void add_and_project(const LowRank& shape, const float* in, float* matrix, const float* q, float* p) {
  HWY_DYNAMIC_DISPATCH(add_and_project_here)(shape, in, matrix, q, p);
}

void project_back(const LowRank& shape, const float* matrix, const float* p, float* q) {
  HWY_DYNAMIC_DISPATCH(project_back_here)(shape, matrix, p, q);
}

void expand(const LowRank& shape, Into into, const float* p, const float* q, float* matrix) {
  HWY_DYNAMIC_DISPATCH(expand_here)(shape, into, p, q, matrix);
}

}  // namespace tutti::compress::simd
#endif
