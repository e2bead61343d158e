#pragma once

#include <memory>

#include "compress/codec.hpp"
#include "compress/simd/block.hpp"

namespace tutti::compress {

/// What int8, int4 and fp8 share: values scaled by the largest of their block.
class BlockCodec final : public Codec {
 public:
  /// Throws InvalidArgument if the block is not a multiple of 64.
  BlockCodec(const BlockShape& shape, bool feedback);

  Algebra algebra() const override { return Algebra::reencodable; }

  ErrorClass error_class() const override { return ErrorClass::bounded; }

  bool feedback() const override { return feedback_; }

  std::size_t block() const override { return shape_.block; }

  std::size_t max_bytes(std::size_t count) const override { return shape_.bytes(count); }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override;
  void decode(const Piece& piece, std::span<const std::byte> in, std::span<float> out) const override;
  void decode_add(const Piece& piece, std::span<const std::byte> in, std::span<float> sum) const override;

 private:
  void require_size(std::span<const std::byte> in, std::size_t count) const;

  BlockShape shape_;
  bool feedback_;
};

/// By the options block, rounding and feedback.
std::unique_ptr<Codec> make_block_codec(BlockFormat format, std::size_t block, bool feedback,
                                        Options& options);

}  // namespace tutti::compress
