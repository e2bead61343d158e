#include "compress/codec/block.hpp"
#include "compress/codec/codecs.hpp"

namespace tutti::compress {

/// fp8: blocks scaled by their largest magnitude to 448 and rounded to e4m3. Source: the Open Compute
/// Project's 8-bit floating point specification (OFP8 1.0); a scale for a block of 256, as in flashinfer's
/// two-shot allreduce.
///
/// Wire, little endian: one fp32 scale a block, zero bytes up to a multiple of 16, then one byte a value:
/// sign, 4 bits of exponent (bias 7), 3 of mantissa, with denormals; the last block may be short. A value is
/// the byte's number times the scale. A block with a NaN or an infinity has scale NaN: all of it is decoded
/// as NaN; its residual stays as it was. No encoder writes the byte 0x7F or 0xFF, and who reads it gets a
/// NaN. A block of zeros has scale 0.
///
/// Collective: each slice's owner decodes what all ranks have sent, adds in fp32, encodes again; all gather
/// that. The error of a value is at most a sixteenth of it (stochastic: an eighth), or 2^-10 (2^-9) scales if
/// that is more, at each of the two encodings.
///
/// Loses to int8 of the same size where a block's values are of like magnitude; wins where small values
/// beside large ones matter. Loses to dense inside a node, where copying 4 bytes costs less than encoding,
/// and on networks from about 6 GB/s for each core that encodes.
std::unique_ptr<Codec> make_fp8(Options& options) {
  return make_block_codec(BlockFormat::fp8, 256, {.feedback = false}, options);
}

}  // namespace tutti::compress
