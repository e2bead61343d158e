#pragma once

#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"

namespace tutti::compress {

/// By the largest of the block: int8, int4, fp8, ternary if it is stochastic. By what exceeds 0.7 means:
/// ternary to nearest. By the mean: onebit, which does not round. By the norm: qsgd8 and qsgd4. By a scale
/// that the caller gives: terngrad, which is stochastic and has no residual.
enum class BlockFormat : std::uint8_t { int8, int4, fp8, ternary, onebit, qsgd8, qsgd4, terngrad };

/// Bits of a value.
TUTTI_HD constexpr std::size_t bits_in(BlockFormat format) {
  switch (format) {
    case BlockFormat::int8:
    case BlockFormat::fp8:
    case BlockFormat::qsgd8: return 8;
    case BlockFormat::int4:
    case BlockFormat::qsgd4: return 4;
    case BlockFormat::ternary:
    case BlockFormat::terngrad: return 2;
    case BlockFormat::onebit: return 1;
  }
  return 0;
}

inline constexpr std::size_t most_in_block = 4096;

}  // namespace tutti::compress
