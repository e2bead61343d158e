#include <array>

#include "base/error.hpp"
#include "compress/codec/codecs.hpp"
#include "compress/simd/natural.hpp"

namespace tutti::compress {
namespace {

/// natural: each value a power of two, the one above or below by chance, right on average; or the nearer one.
/// Source: natural compression (Horvath et al., 2019), with 7 bits of exponent instead of 8, so that a value
/// is a byte.
///
/// Wire: one byte a value: the sign in bit 7; 0 is zero, 1 to 126 are 2^-63 to 2^62, 127 is NaN. Larger ones
/// become 2^62; smaller ones 0 or 2^-63 by chance. What is not finite is decoded as NaN; its residual stays
/// as it was.
///
/// Collective: each slice's owner decodes what all ranks have sent, adds in fp32, encodes again; all gather
/// that. The error of a value is at most half of it to nearest, all of it by chance.
///
/// Loses to dense inside a node and on networks from about 10 GB/s for each core that encodes; to int8, of
/// the same bytes, in accuracy, unless values of one block are of very unlike sizes.
class Natural final : public Codec {
 public:
  Natural(bool stochastic, bool feedback) : stochastic_(stochastic), feedback_(feedback) {}

  Algebra algebra() const override { return Algebra::reencodable; }

  ErrorClass error_class() const override { return ErrorClass::bounded; }

  bool feedback() const override { return feedback_; }

  std::size_t max_bytes(std::size_t count) const override { return count; }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override {
    base::require(out.size() >= in.size(), "an encoding of {} elements needs {} bytes, there are {}",
                  in.size(), in.size(), out.size());
    float* residual = feedback_ ? residual_of(piece, in.size(), state) : nullptr;
    const Draws draws = piece.draws();
    encode_natural(stochastic_ ? &draws : nullptr, piece.offset, in, residual,
                   reinterpret_cast<std::uint8_t*>(out.data()));
    return in.size();
  }

  void decode(const Piece& /*piece*/, std::span<const std::byte> in, std::span<float> out) const override {
    require_size(in, out.size());
    decode_natural(reinterpret_cast<const std::uint8_t*>(in.data()), out, false);
  }

  void decode_add(const Piece& /*piece*/, std::span<const std::byte> in,
                  std::span<float> sum) const override {
    require_size(in, sum.size());
    decode_natural(reinterpret_cast<const std::uint8_t*>(in.data()), sum, true);
  }

 private:
  static void require_size(std::span<const std::byte> in, std::size_t count) {
    if (in.size() != count)
      base::fail<MismatchError>("an encoding of {} elements has {} bytes, expected {}", count, in.size(),
                                count);
  }

  bool stochastic_;
  bool feedback_;
};

}  // namespace

std::unique_ptr<Codec> make_natural(Options& options) {
  constexpr std::array<std::string_view, 2> roundings{"stochastic", "nearest"};
  const bool stochastic = options.choice("rounding", roundings) == "stochastic";
  return std::make_unique<Natural>(stochastic, options.flag("feedback", false));
}

}  // namespace tutti::compress
