#include "base/error.hpp"
#include "compress/codec/block.hpp"
#include "compress/codec/codecs.hpp"

namespace tutti::compress {

/// qsgd: stochastic quantisation by the Euclidean norm of a block, unbiased, without feedback. Source: QSGD
/// (Alistarh et al., NeurIPS 2017, section 3.1), by buckets of 512 values; levels as whole numbers of 8 or 4
/// bits, 127 or 7 of them, instead of Elias codes: these take longer to write than they save.
///
/// Wire, little endian: one fp32 a block, the norm over the levels, zero bytes up to a multiple of 16, then
/// one signed byte a value (4 bits: half a byte, the first of two in the lower half); the last block may be
/// short. A value is its level times the scale. A block with a NaN or an infinity has scale NaN: all of it is
/// decoded as NaN. Squares are added in the order of OrderedSum.
///
/// Collective: each slice's owner decodes what all ranks have sent, adds in fp32, encodes again; all gather
/// that. Right on average; the error of a value is below one level, the norm over 127 or 7.
///
/// Loses to dense where int8 does, and to int8:rounding=stochastic always: a norm is up to sqrt(block) times
/// the largest value, so that most levels stay unused. Here to compare with.
std::unique_ptr<Codec> make_qsgd(Options& options) {
  const std::uint64_t bits = options.number("bits", 8, 4, 8);
  base::require(bits == 4 || bits == 8, "qsgd:bits={}: expected 4 or 8", bits);
  const BlockShape shape{.format = bits == 8 ? BlockFormat::qsgd8 : BlockFormat::qsgd4,
                         .block = options.number("block", 512, 64, most_in_block),
                         .stochastic = true};
  return std::make_unique<BlockCodec>(shape, BlockTraits{});
}

}  // namespace tutti::compress
