#pragma once

#include <memory>

#include "compress/codec.hpp"
#include "compress/simd/block.hpp"

namespace tutti::compress {

/// What sets codecs apart whose values are scaled by block.
struct BlockTraits {
  bool feedback = false;
  ErrorClass error_class = ErrorClass::bounded;
  std::uint64_t exact_steps = 0;
};

/// What int8, int4, fp8, ternary, onebit and qsgd share: values scaled by block.
class BlockCodec final : public Codec {
 public:
  /// Throws InvalidArgument if the block is not a multiple of 64.
  BlockCodec(const BlockShape& shape, const BlockTraits& traits);

  Algebra algebra() const override { return Algebra::reencodable; }

  ErrorClass error_class() const override { return traits_.error_class; }

  bool feedback() const override { return traits_.feedback; }

  std::uint64_t exact_steps() const override { return traits_.exact_steps; }

  std::size_t block() const override { return shape_.block; }

  std::size_t max_bytes(std::size_t count) const override { return shape_.bytes(count); }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override;
  void decode(const Piece& piece, std::span<const std::byte> in, std::span<float> out) const override;
  void decode_add(const Piece& piece, std::span<const std::byte> in, std::span<float> sum) const override;

 private:
  BlockShape shape_;
  BlockTraits traits_;
};

/// Throws MismatchError if `in` is not as long as an encoding of `count` elements.
void require_encoding(const BlockShape& shape, std::span<const std::byte> in, std::size_t count);

/// By the options block, rounding and feedback, whose values else are these.
std::unique_ptr<Codec> make_block_codec(BlockFormat format, std::size_t block, BlockTraits traits,
                                        Options& options);

}  // namespace tutti::compress
