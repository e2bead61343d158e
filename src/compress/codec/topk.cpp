#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "compress/arithmetic/select.hpp"
#include "compress/codec/codecs.hpp"
#include "compress/sparse/pick.hpp"
#include "compress/sparse/wire.hpp"

namespace tutti::compress {
namespace {

/// Entries of a sample that tells a threshold: one in 128, but enough to tell and no more than it takes.
std::size_t sample_size(std::size_t count) {
  return std::clamp<std::size_t>(count / 128, 1024, 16384);
}

/// topk: the k = ceil(density · n) largest of a = gradient + residual, n the elements of a piece; of equal
/// ones those with the lowest index; fewer if fewer are not 0. The residual keeps the rest (error feedback:
/// Stich, Cordonnier, Jaggi, Sparsified SGD with memory, 2018). Wire: sparse/wire.hpp, 6 bytes an entry, 4
/// with values=bf16, whose rounding stays in the residual too. reuse=N: the threshold of an exact search
/// serves N encodings more and is nudged when their count leaves [2/3 k, 5/4 k], as in Ok-Topk (Li, Hoefler
/// 2022); never more than 5/4 k are sent. Collective: allgatherv, then each rank adds all. Every rank
/// receives (p - 1) · 6k bytes, where a dense ring costs 8n (p - 1) / p: loses to dense from p = 4 / (3 ·
/// density) ranks on, 133 at 1 %; to int8 from p = 33 on.
class TopK final : public Codec {
 public:
  TopK(double density, Format format, bool rounds, std::uint64_t reuse)
      : density_(density), format_(format), rounds_(rounds), reuse_(reuse) {}

  Algebra algebra() const override { return Algebra::gatherable; }

  ErrorClass error_class() const override { return ErrorClass::feedback; }

  bool feedback() const override { return true; }

  std::size_t max_bytes(std::size_t count) const override { return format_.bound(count, most(count)); }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override {
    const auto residual = state.array(residual_name).subspan(piece.offset, in.size());
    if (reuse_ == 0) {
      exact(piece, in, residual);
    } else {
      reuse(piece, in, residual, state);
    }
    if (rounds_) {
      for (std::size_t i = 0; i < entries_.size(); ++i) {
        const float value = entries_.value[i];
        residual[entries_.index[i]] = left_of(value, from_bfloat16(to_bfloat16(value)));
      }
    }
    return format_.write(in.size(), entries_.index, entries_.value, out);
  }

  void decode(const Piece& /*piece*/, std::span<const std::byte> in, std::span<float> out) const override {
    format_.decode(in, out);
  }

  void decode_add(const Piece& /*piece*/, std::span<const std::byte> in,
                  std::span<float> sum) const override {
    format_.decode_add(in, sum);
  }

 private:
  std::size_t most(std::size_t count) const {
    const std::size_t wanted = entries_of(density_, count);
    return reuse_ == 0 ? wanted : std::min(count, (5 * wanted + 3) / 4);
  }

  /// A sample tells a threshold that somewhat more than k reach, so that one pass finds all candidates.
  Key exact(const Piece& piece, std::span<const float> in, std::span<float> residual) {
    const std::size_t wanted = entries_of(density_, in.size());
    const Sampling sampling = sample(in.size(), sample_size(in.size()), piece.draws().of(piece.offset));
    const Key guess = guess_threshold(in.size(), wanted, sampling, true,
                                      [&](std::size_t i) { return in[i] + residual[i]; });
    return pick_exactly(adding(in, residual), residual, {.threshold = guess}, wanted, entries_);
  }

  void reuse(const Piece& piece, std::span<const float> in, std::span<float> residual, State& state) {
    double& kept = state.number(name_at("threshold", piece.offset));
    double& left = state.number(name_at("reuses", piece.offset));
    if (left < 1) {
      kept = exact(piece, in, residual);
      left = static_cast<double>(reuse_);
      return;
    }
    left -= 1;
    const std::size_t wanted = entries_of(density_, in.size());
    const Limit limit{.want = wanted, .most = most(in.size())};
    const Cut cut{.threshold = static_cast<Key>(kept)};
    const Key reached = pick(adding(in, residual), residual, cut, limit, entries_);
    kept = reached;
    if (3 * entries_.size() < 2 * wanted) kept = std::max(reached, nudge + least_key) - nudge;
  }

  /// 2^-5 to 2^-6 of the threshold. Upwards the limit nudges.
  static constexpr Key nudge = 1U << 18U;

  double density_;
  Format format_;
  bool rounds_;
  std::uint64_t reuse_;
  Entries entries_;
};

}  // namespace

std::unique_ptr<Codec> make_topk(Options& options) {
  const double density = options.real("density", 0.01, 1e-7, 1);
  constexpr std::array<std::string_view, 2> forms{"fp32", "bf16"};
  const bool rounds = options.choice("values", forms) == "bf16";
  const std::uint64_t reuse = options.number("reuse", 0, 0, 1000000);
  return std::make_unique<TopK>(density, Format(rounds ? Format::Values::bf16 : Format::Values::fp32), rounds,
                                reuse);
}

}  // namespace tutti::compress
