#include "compress/codec/block.hpp"
#include "compress/codec/codecs.hpp"

namespace tutti::compress {

/// int8: blocks scaled by their largest magnitude to whole numbers from -127 to 127. Source: the symmetric
/// block quantisation of ZeRO++ (qgZ), with stochastic rounding as in QSGD if asked for; the largest
/// magnitude instead of a norm, which wastes no range and does not depend on the order of adding.
///
/// Wire, little endian: one fp32 scale a block, zero bytes up to a multiple of 16, then one signed byte a
/// value; the last block may be short. A value is its byte times the scale. A block with a NaN or an infinity
/// has scale NaN: all of it is decoded as NaN; its residual stays as it was. A block of zeros has scale 0.
///
/// Collective: each slice's owner decodes what all ranks have sent, adds in fp32, encodes again; all gather
/// that. The error of a value is at most half a scale (stochastic: one scale) at each of the two encodings.
///
/// Loses to dense inside a node, where copying 4 bytes costs less than encoding, and on networks from about
/// 10 GB/s for each core that encodes. Loses to bf16 in accuracy where one value of a block exceeds the
/// others by far.
std::unique_ptr<Codec> make_int8(Options& options) {
  return make_block_codec(BlockFormat::int8, 256, {.feedback = false}, options);
}

}  // namespace tutti::compress
