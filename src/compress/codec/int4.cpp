#include "compress/codec/block.hpp"
#include "compress/codec/codecs.hpp"

namespace tutti::compress {

/// int4: blocks scaled by their largest magnitude to whole numbers from -7 to 7, two in a byte. Source: the
/// symmetric block quantisation of ZeRO++ (qgZ), with error feedback, as few levels need it. Blocks are
/// shorter than those of int8, 64 values: with few levels a large neighbour costs more than a scale does.
///
/// Wire, little endian: one fp32 scale a block, zero bytes up to a multiple of 16, then half a byte a value
/// in two's complement, the first of two in the lower half; the last block may be short, and of an odd number
/// of values: then the last upper half is zero. A value is its half byte times the scale. A block with a NaN
/// or an infinity has scale NaN: all of it is decoded as NaN; its residual stays as it was. A block of zeros
/// has scale 0.
///
/// Collective: each slice's owner decodes what all ranks have sent, adds in fp32, encodes again; all gather
/// that. The error of a value is at most half a scale (stochastic: one scale), a fourteenth of the block's
/// largest, at each of the two encodings.
///
/// Loses to dense inside a node, where copying 4 bytes costs less than encoding, and on networks from about
/// 10 GB/s for each core that encodes. Loses to int8 where latency, not bytes, bounds a collective.
std::unique_ptr<Codec> make_int4(Options& options) {
  return make_block_codec(BlockFormat::int4, 64, {.feedback = true}, options);
}

}  // namespace tutti::compress
