#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compress/arithmetic/block.hpp"
#include "compress/arithmetic/format.hpp"
#include "compress/arithmetic/philox.hpp"

/// Loops over blocks of scaled values, vectorized; arithmetic/block.hpp says what they compute.
namespace tutti::compress {

struct BlockShape {
  BlockFormat format = BlockFormat::int8;
  std::size_t block = 256;  ///< a multiple of 64, at most most_in_block
  bool stochastic = false;
  BlockScale given = {};  ///< of terngrad

  /// Bytes of an encoding.
  std::size_t bytes(std::size_t count) const;
};

/// Encodes `in`, plus residual[i] if that is not null; then stores there what was not sent. A block with a
/// NaN or an infinity leaves its residual alone: what was kept is good, and is sent when the values are
/// numbers again. `first`: the number of in[0] in its parameter, for the draws. `out` has
/// shape.bytes(in.size()), all of which are written.
void encode_blocks(const BlockShape& shape, const Draws& draws, std::uint64_t first,
                   std::span<const float> in, float* residual, std::byte* out);

/// The scale of all blocks of terngrad: the largest magnitude, but at most `clip` times the root of the mean
/// square; NaN with a NaN or an infinity among `in`.
BlockScale clipped_scale(std::span<const float> in, float clip);

/// out = or += what encode_blocks() wrote at `in`.
void decode_blocks(const BlockShape& shape, const std::byte* in, std::span<float> out, bool add);

}  // namespace tutti::compress
