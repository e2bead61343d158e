#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/types.hpp"

/// Loops over elements, vectorized (Highway), the instruction set chosen at run time. Pure: no allocation
/// that outlives a call, no global state but the dispatch table. Any alignment, any count. Commutative to the
/// bit: swapping operands never changes a result.
///
/// NaN: min and max give the canonical quiet NaN (positive, only the top mantissa bit set) if either operand
/// is NaN. Every floating result that is NaN is that canonical NaN, whatever the operands' payloads, in every
/// loop and on every path. Only a plain copy (convert, or reduce_many of one array, to the same type without
/// a divisor) keeps the bits it finds.
///
/// All throw InvalidArgument for types that the call does not know, a divisor with an op other than average,
/// and a divisor that does not fit a signed accumulator.
namespace tutti::kernel {

/// Type in which partial results of `op` over `type` are kept and travel: f32 for sums, averages and products
/// of half types; i64 or u64 for averages of integers; otherwise `type` itself.
DType accumulator(DType type, Op op) noexcept;

/// A typed array, read.
struct Source {
  const void* data = nullptr;
  DType type = DType::f32;
};

/// A typed array, written.
struct Target {
  void* data = nullptr;
  DType type = DType::f32;
};

/// target[i] = a[i] op b[i], i < count, computed in accumulator(type, op). `type` is the element type of the
/// collective; each of a, b and target is of that type or of its accumulator. If `divisor` is not 0 (op
/// average only) the sum is divided by it before the one rounding: floating results have the bits of a true
/// division; integers truncate toward zero. target may be the same array as a or b if it has the same type.
void reduce(Op op, DType type, Target target, Source a, Source b, std::size_t count,
            std::uint64_t divisor = 0);

/// target[i] = contributions[0][i] op contributions[1][i] op …, added in the canonical order over their
/// indices (see canonical.hpp), in one pass. All contributions are of `contribution_type`, which is `type` or
/// its accumulator; so is the target's. target may be one of the contributions if it has the same type. Bits
/// equal those of the same tree built from reduce() with partial results in accumulator type.
void reduce_many(Op op, DType type, Target target, std::span<const void* const> contributions,
                 DType contribution_type, std::size_t count, std::uint64_t divisor = 0);

/// target[i] = source[i] (divided by `divisor` if that is not 0): copies, widens to the accumulator, or
/// narrows from it with one rounding (to nearest even; 64-bit accumulators of integer averages always fit
/// after the division, otherwise they wrap). The same array is allowed if types are equal.
void convert(DType type, Op op, Target target, Source source, std::size_t count, std::uint64_t divisor = 0);

/// target[i] = source[i] * factor in the accumulator type of (type, op): fp32 factor and product for f32 and
/// half types, fp64 for f64. target.type is the accumulator. Throws InvalidArgument for integer types.
void scale(DType type, Op op, Target target, Source source, std::size_t count, double factor);

/// memcpy that tolerates count 0 with null pointers.
void copy(void* target, const void* source, std::size_t bytes);

/// memcpy that writes past the caches: for results too long to be found there later. flush_stream() before
/// anybody is told that they are there.
void stream(void* target, const void* source, std::size_t bytes);
void flush_stream();

/// Name of the instruction set in use ("AVX3_ZEN4", "AVX2", …) and of all that this build and this machine
/// have, best first.
std::string_view simd_target();
std::vector<std::string_view> simd_targets();
/// Tests: use only this instruction set from now on (a name from simd_targets()); empty: the best again.
/// Throws InvalidArgument. Not thread-safe.
void force_simd_target(std::string_view name);

}  // namespace tutti::kernel
