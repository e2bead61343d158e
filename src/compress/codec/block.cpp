#include "compress/codec/block.hpp"

#include <array>

#include "base/error.hpp"

namespace tutti::compress {

BlockCodec::BlockCodec(const BlockShape& shape, const BlockTraits& traits) : shape_(shape), traits_(traits) {
  base::require(shape.block % 64 == 0 && shape.block > 0 && shape.block <= most_in_block,
                "block={}: expected a multiple of 64, at most {}", shape.block, most_in_block);
}

std::size_t BlockCodec::encode(const Piece& piece, std::span<const float> in, State& state,
                               std::span<std::byte> out) {
  const std::size_t bytes = shape_.bytes(in.size());
  base::require(out.size() >= bytes, "an encoding of {} elements needs {} bytes, there are {}", in.size(),
                bytes, out.size());
  float* residual = traits_.feedback ? residual_of(piece, in.size(), state) : nullptr;
  encode_blocks(shape_, piece.draws(), piece.offset, in, residual, out.data());
  return bytes;
}

void BlockCodec::decode(const Piece& /*piece*/, std::span<const std::byte> in, std::span<float> out) const {
  require_encoding(shape_, in, out.size());
  decode_blocks(shape_, in.data(), out, false);
}

void BlockCodec::decode_add(const Piece& /*piece*/, std::span<const std::byte> in,
                            std::span<float> sum) const {
  require_encoding(shape_, in, sum.size());
  decode_blocks(shape_, in.data(), sum, true);
}

void require_encoding(const BlockShape& shape, std::span<const std::byte> in, std::size_t count) {
  const std::size_t expected = shape.bytes(count);
  if (in.size() != expected)
    base::fail<MismatchError>("an encoding of {} elements in blocks of {} has {} bytes, expected {}", count,
                              shape.block, in.size(), expected);
}

std::unique_ptr<Codec> make_block_codec(BlockFormat format, std::size_t block, BlockTraits traits,
                                        Options& options) {
  constexpr std::array<std::string_view, 2> roundings{"nearest", "stochastic"};
  const BlockShape shape{.format = format,
                         .block = options.number("block", block, 64, most_in_block),
                         .stochastic = options.choice("rounding", roundings) == "stochastic"};
  traits.feedback = options.flag("feedback", traits.feedback);
  return std::make_unique<BlockCodec>(shape, traits);
}

}  // namespace tutti::compress
