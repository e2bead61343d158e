#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tutti/types.hpp"

/// The kernels once more, element by element, from the definitions and by other means: half types through
/// exact double arithmetic, integers in 64 bits cut to size.
namespace reference {

/// One element of any type: floating ones exactly in a double, integers sign- or zero-extended to 64 bits.
struct Number {
  double floating = 0;
  std::uint64_t integer = 0;
};

Number read(tutti::DType type, const std::byte* p);
/// Rounds to nearest even and cuts integers to size; NaN becomes the canonical one.
void write(tutti::DType type, Number value, std::byte* p);

/// a op b in type `wide`.
Number apply(tutti::Op op, tutti::DType wide, Number a, Number b);
/// a / divisor in type `wide`.
Number divide(tutti::DType wide, Number a, std::uint64_t divisor);

/// What kernel::accumulator must say.
tutti::DType accumulator(tutti::DType type, tutti::Op op);

/// Value of a pattern, and the pattern nearest to a value.
double f16_value(std::uint16_t bits);
double bf16_value(std::uint16_t bits);
std::uint16_t nearest_f16(double value);
std::uint16_t nearest_bf16(double value);

}  // namespace reference
