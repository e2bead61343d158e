#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/types.hpp"

/// What kernel.cpp, which checks arguments, hands to the loops, which do not. Private to the layer.
namespace tutti::kernel {

/// One reduction over `sources`; a conversion is one over a single source. "Wide" arrays are of the
/// accumulator type, the others of the element type. In a mixed job there are two sources, of which the
/// second alone is wide.
struct Job {
  Op op = Op::sum;
  bool wide_sources = false;
  bool wide_target = false;
  bool mixed = false;
  const void* const* sources = nullptr;
  std::uint32_t source_count = 0;
  void* target = nullptr;
  std::size_t count = 0;
  std::uint64_t divisor = 0;
};

/// target[i] = source[i] * factor
struct ScaleJob {
  bool wide_target = false;
  const void* source = nullptr;
  void* target = nullptr;
  std::size_t count = 0;
  double factor = 1;
};

void combine_f32(const Job& job);
void combine_f64(const Job& job);
void combine_f16(const Job& job);
void combine_bf16(const Job& job);
/// Integers whose accumulator is their own type: sum, product, min, max; averages of 64-bit integers.
void combine_integer(DType type, const Job& job);
/// Averages of integers of 8 and 32 bits, and conversions from and to their accumulator.
void combine_average(DType type, const Job& job);

void scale_f32(const ScaleJob& job);
void scale_f64(const ScaleJob& job);
void scale_f16(const ScaleJob& job);
void scale_bf16(const ScaleJob& job);

/// The Highway bit of the instruction set that the loops run on now.
std::int64_t running_target();

}  // namespace tutti::kernel
