#include "base/error.hpp"
#include "compress/codec/codecs.hpp"
#include "kernel/kernel.hpp"

namespace tutti::compress {
namespace {

/// fp16 and bf16: every value rounded to nearest even; fp32 sums. Wire: the values, little endian, 2 bytes an
/// element. The slice owner adds what all ranks have sent in fp32 and rounds once more, so that the error
/// does not grow with the rank count, as it does when partial sums travel in 16 bits. Loses to dense where 2
/// bytes an element cost less than converting: inside a node.
class Cast final : public Codec {
 public:
  explicit Cast(DType type) : type_(type) {}

  Algebra algebra() const override { return Algebra::reencodable; }

  ErrorClass error_class() const override { return ErrorClass::cast; }

  bool feedback() const override { return false; }

  std::size_t max_bytes(std::size_t count) const override { return 2 * count; }

  std::size_t encode(const Piece& /*piece*/, std::span<const float> in, State& /*state*/,
                     std::span<std::byte> out) override {
    kernel::convert(type_, Op::sum, {out.data(), type_}, {in.data(), DType::f32}, in.size());
    return 2 * in.size();
  }

  void decode(const Piece& /*piece*/, std::span<const std::byte> in, std::span<float> out) const override {
    require_size(in, out.size());
    kernel::convert(type_, Op::sum, {out.data(), DType::f32}, {in.data(), type_}, out.size());
  }

  void decode_add(const Piece& /*piece*/, std::span<const std::byte> in,
                  std::span<float> sum) const override {
    require_size(in, sum.size());
    kernel::reduce(Op::sum, type_, {sum.data(), DType::f32}, {sum.data(), DType::f32}, {in.data(), type_},
                   sum.size());
  }

 private:
  static void require_size(std::span<const std::byte> in, std::size_t count) {
    if (in.size() != 2 * count)
      base::fail<MismatchError>("an encoding of {} elements has {} bytes, expected {}", count, in.size(),
                                2 * count);
  }

  DType type_;
};

}  // namespace

std::unique_ptr<Codec> make_fp16(Options& /*options*/) {
  return std::make_unique<Cast>(DType::f16);
}

std::unique_ptr<Codec> make_bf16(Options& /*options*/) {
  return std::make_unique<Cast>(DType::bf16);
}

}  // namespace tutti::compress
