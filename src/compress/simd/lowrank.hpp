#pragma once

#include <cstddef>
#include <cstdint>

/// The passes of PowerSGD over a matrix, for the instruction set in use: bits are those of
/// arithmetic/lowrank.hpp. Addresses may be any that floats have.
namespace tutti::compress::simd {

/// A matrix of `rows` × `columns`, row by row, and its factors: P (rows × rank, row by row) and Q (rank rows
/// of `columns`).
struct LowRank {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t rank = 0;
};

/// matrix += in; p = matrix Q.
void add_and_project(const LowRank& shape, const float* in, float* matrix, const float* q, float* p);

/// q = matrixᵀ P.
void project_back(const LowRank& shape, const float* matrix, const float* p, float* q);

enum class Into : std::uint8_t { set, add, subtract };

/// matrix = P Qᵀ, or += or -= it.
void expand(const LowRank& shape, Into into, const float* p, const float* q, float* matrix);

}  // namespace tutti::compress::simd
