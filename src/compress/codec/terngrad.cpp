#include "base/error.hpp"
#include "compress/codec/block.hpp"
#include "compress/codec/codecs.hpp"

namespace tutti::compress {
namespace {

/// terngrad: each value -s, 0 or s, s with the probability of its magnitude over s, unbiased, without
/// feedback. Source: TernGrad (Wen et al., NeurIPS 2017): s is the largest magnitude of the whole parameter
/// (section 3.1), of values clipped to 2.5 deviations (section 3.3); deviations are taken from zero here.
/// Every rank has its own s: scales shared by all cost accuracy, by reports of users.
///
/// Wire: that of ternary with blocks of 4096 values, all of which have the same scale.
///
/// Collective: encodings of whole parameters are gathered by all and added. Right on average but for what is
/// clipped; the deviation of a value is up to s / 2.
///
/// Loses to dense inside a node and from about 32 ranks on, as each receives 2 bits a value from every other;
/// to ternary by block, with feedback, always. Here to compare with.
class TernGrad final : public Codec {
 public:
  explicit TernGrad(float clip) : clip_(clip) {}

  Algebra algebra() const override { return Algebra::gatherable; }

  ErrorClass error_class() const override { return ErrorClass::feedback; }

  bool feedback() const override { return false; }

  std::size_t max_bytes(std::size_t count) const override { return shape.bytes(count); }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& /*state*/,
                     std::span<std::byte> out) override {
    const std::size_t bytes = shape.bytes(in.size());
    base::require(out.size() >= bytes, "an encoding of {} elements needs {} bytes, there are {}", in.size(),
                  bytes, out.size());
    BlockShape scaled = shape;
    scaled.given = clipped_scale(in, clip_);
    encode_blocks(scaled, piece.draws(), piece.offset, in, nullptr, out.data());
    return bytes;
  }

  void decode(const Piece& /*piece*/, std::span<const std::byte> in, std::span<float> out) const override {
    require_encoding(shape, in, out.size());
    decode_blocks(shape, in.data(), out, false);
  }

  void decode_add(const Piece& /*piece*/, std::span<const std::byte> in,
                  std::span<float> sum) const override {
    require_encoding(shape, in, sum.size());
    decode_blocks(shape, in.data(), sum, true);
  }

 private:
  static constexpr BlockShape shape{.format = BlockFormat::terngrad, .block = 4096, .stochastic = true};

  float clip_;
};

}  // namespace

std::unique_ptr<Codec> make_terngrad(Options& options) {
  return std::make_unique<TernGrad>(static_cast<float>(options.real("clip", 2.5, 0.1, 1e6)));
}

}  // namespace tutti::compress
