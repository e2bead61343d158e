#include "compress/codec/block.hpp"
#include "compress/codec/codecs.hpp"

namespace tutti::compress {

/// onebit: the sign of each value, times the mean magnitude of its block, with error feedback. Source: 1-bit
/// SGD (Seide et al., Interspeech 2014), with the scale of error-feedback signSGD (Karimireddy et al., ICML
/// 2019) taken by block, which keeps more of a gradient than one scale for all. `warmup`: so many steps at
/// the start go dense, as in 1-bit Adam (Tang et al., ICML 2021), whose second moments settle meanwhile.
///
/// Wire, little endian: one fp32 scale a block, zero bytes up to a multiple of 16, then the sign bits, eight
/// values a byte, the first in the lowest bit; the last block may be short, what is left of its last byte is
/// zero. Zero counts by its sign bit. A block with a NaN or an infinity has scale NaN: all of it is decoded
/// as NaN; its residual stays as it was. A block of zeros has scale 0. Means are added in the order of
/// OrderedSum.
///
/// Collective: each slice's owner decodes what all ranks have sent, adds in fp32, encodes again; all gather
/// that. The error of a value has no bound but its magnitude: only feedback makes it good, and large learning
/// rates need a warm-up, about a sixth of all steps where the rate decays. A block of 64 makes 1.5 bits of a
/// value; with 1024, 1.03, the error is larger than most training bears.
///
/// Loses to dense inside a node and on networks from about 10 GB/s for each core that encodes; to int8 in
/// accuracy, and in steps to it on noisy gradients.
std::unique_ptr<Codec> make_onebit(Options& options) {
  const BlockShape shape{.format = BlockFormat::onebit,
                         .block = options.number("block", 64, 64, most_in_block)};
  return std::make_unique<BlockCodec>(shape,
                                      BlockTraits{.feedback = options.flag("feedback", true),
                                                  .error_class = ErrorClass::feedback,
                                                  .exact_steps = options.number("warmup", 0, 0, most_steps)});
}

}  // namespace tutti::compress
