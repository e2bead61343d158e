#include "compress/codec/block.hpp"
#include "compress/codec/codecs.hpp"

namespace tutti::compress {

/// ternary: each value -1, 0 or 1 times a scale of its block, with error feedback. To nearest, what exceeds
/// 0.7 times the mean magnitude is sent as the mean of all that do: the least squared error three levels can
/// have, nearly (Li, Zhang, Liu, Ternary weight networks, 2016, section 2.2). Stochastic: the scale is the
/// block's largest magnitude, right on average.
///
/// Wire, little endian: one fp32 scale a block, zero bytes up to a multiple of 16, then a quarter of a byte a
/// value in two's complement, the first of four in the lowest bits; the last block may be short, what is left
/// of its last byte is zero. A block with a NaN or an infinity has scale NaN: all of it is decoded as NaN;
/// its residual stays as it was. Of one whose magnitudes are below 2^-100 on average nothing is sent.
///
/// Collective: each slice's owner decodes what all ranks have sent, adds in fp32, encodes again; all gather
/// that. The error of a value has no bound but its magnitude: only feedback makes it good.
///
/// Loses to dense inside a node and on networks from about 5 GB/s for each core that encodes; to int8 in
/// accuracy without feedback, and where latency, not bytes, bounds a collective.
std::unique_ptr<Codec> make_ternary(Options& options) {
  return make_block_codec(BlockFormat::ternary, 256, {.feedback = true, .error_class = ErrorClass::feedback},
                          options);
}

}  // namespace tutti::compress
