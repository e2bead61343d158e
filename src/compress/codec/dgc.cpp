#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>

#include "compress/arithmetic/dgc.hpp"
#include "compress/arithmetic/select.hpp"
#include "compress/codec/codecs.hpp"
#include "compress/simd/select.hpp"
#include "compress/sparse/pick.hpp"
#include "compress/sparse/wire.hpp"

namespace tutti::compress {
namespace {

/// dgc: Deep Gradient Compression (Lin, Han, Mao, Wang, Dally, ICLR 2018), after the paper and its authors'
/// code. For every element, in State's "momentum" u and "residual" v:
///     u = momentum · u + g;  v = v + u;  the largest of v are sent, and there u = v = 0.
/// g is scaled first so that the norm of the piece is at most clip · p^-1/2 (clip=0: not). k = ceil(density ·
/// n), in the first `warmup` steps at least 25, 6.3, 1.5, 0.4 % of n, a quarter of these steps each. The
/// threshold is that of a sample of 1 % or more; while fewer than 0.8 k reach it, it falls to 0.8 of itself,
/// ten times at most; of more than k, the k largest are sent (the authors' code sends those with the lowest
/// indices if they are at most 1.3 k). So up to k are sent, rarely fewer than 0.8 k. Wire: sparse/wire.hpp, 6
/// bytes an entry. Collective: allgatherv, then each rank adds all. With momentum the optimizer must have
/// none of its own, and sent + residual is not what came: u owes more. So it is no error feedback in Codec's
/// sense, except with momentum=0. Loses to dense from p = 4 / (3 · density) ranks on (1333 at 0.1 %), and
/// wherever its 20 bytes an element in memory take longer than what it saves on the wire. Without warm-up it
/// loses accuracy.
class Dgc final : public Codec {
 public:
  struct Settings {
    double density = 0;
    float momentum = 0;
    double clip = 0;
    std::uint64_t warmup = 0;
  };

  explicit Dgc(const Settings& settings) : settings_(settings), format_(Format::Values::fp32) {}

  Algebra algebra() const override { return Algebra::gatherable; }

  ErrorClass error_class() const override { return ErrorClass::feedback; }

  bool feedback() const override { return settings_.momentum == 0 && settings_.clip == 0; }

  std::size_t max_bytes(std::size_t count) const override {
    return format_.bound(count, entries_of(dgc_density(settings_.density, 0, settings_.warmup), count));
  }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override {
    const auto sums = state.array(residual_name).subspan(piece.offset, in.size());
    if (feedback()) {
      select(piece, sums, adding(in, sums), [&](std::size_t i) { return sums[i] + in[i]; });
      return format_.write(in.size(), entries_.index, entries_.value, out);
    }
    const auto velocity = state.array("momentum").subspan(piece.offset, in.size());
    const float beta = settings_.momentum;
    const float scale = dgc_scale(dgc_norm(in), settings_.clip, static_cast<std::uint64_t>(piece.ranks));
    const Pass pass = [&](std::size_t first, std::size_t count, Cut cut, std::uint32_t* found) {
      const simd::Momentum momentum{.beta = beta, .scale = scale, .momentum = velocity.data() + first};
      return simd::momentum_and_find(in.data() + first, momentum, sums.data() + first, count, cut, found);
    };
    select(piece, sums, pass,
           [&](std::size_t i) { return sums[i] + dgc_momentum(velocity[i], in[i], beta, scale); });
    for (const std::uint32_t i : entries_.index) velocity[i] = 0;
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
  double dgc_norm(std::span<const float> in) const {
    return settings_.clip > 0 ? std::sqrt(sum_of_squares(in.data(), in.size())) : 0;
  }

  /// value_at: what an element will be once the pass has updated it.
  template <class ValueAt>
  void select(const Piece& piece, std::span<float> sums, const Pass& pass, const ValueAt& value_at) {
    const std::size_t count = sums.size();
    const std::size_t wanted =
        entries_of(dgc_density(settings_.density, piece.step, settings_.warmup), count);
    // One in a hundred, but so many that some of the wanted are among them.
    const auto enough = static_cast<std::size_t>(std::ceil(10 / settings_.density));
    const std::size_t samples = std::max<std::size_t>(count / 100, std::min(count, enough));
    const Sampling sampling = sample(count, samples, piece.draws().of(piece.offset));
    Key threshold = guess_threshold(count, wanted, sampling, false, value_at);
    pick(pass, sums, {.threshold = threshold}, {.want = wanted}, entries_);
    for (int round = 0; round < 10 && 5 * entries_.size() < 4 * wanted && threshold > least_key; ++round) {
      put_back(entries_, sums);
      threshold = dgc_lower(threshold);
      pick(finding(sums), sums, {.threshold = threshold}, {.want = wanted}, entries_);
    }
    if (entries_.size() > wanted) keep_largest(entries_, wanted, sums);
  }

  Settings settings_;
  Format format_;
  Entries entries_;
};

}  // namespace

std::unique_ptr<Codec> make_dgc(Options& options) {
  return std::make_unique<Dgc>(Dgc::Settings{
      .density = options.real("density", 0.001, 1e-7, 1),
      .momentum = static_cast<float>(options.real("momentum", 0.9, 0, 1)),
      .clip = options.real("clip", 0, 0, 1e30),
      .warmup = options.number("warmup", 0, 0, most_steps),
  });
}

}  // namespace tutti::compress
