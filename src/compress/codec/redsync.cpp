#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "compress/arithmetic/redsync.hpp"
#include "compress/arithmetic/select.hpp"
#include "compress/codec/codecs.hpp"
#include "compress/simd/select.hpp"
#include "compress/sparse/pick.hpp"
#include "compress/sparse/wire.hpp"

namespace tutti::compress {
namespace {

/// redsync: RedSync (Fang, Fu, Yang, Hsieh, 2018), with error feedback: a = gradient + residual. By the size
/// of the whole parameter:
///   below `small` KiB: all values travel, as they are;
///   below `large` KiB: trimmed top-k: the largest of mean + r (max - mean), r = 0.8, 0.6 … 0, that k reach,
///     then exactly the k largest of those;
///   else: a threshold that k to 2k reach, looked for by bisection and used for `reuse` encodings.
/// quantised=on: only values of one sign are sent, positive at even steps and negative at odd ones, and all
/// as their mean (except NaN and infinity, which go at once and make the mean NaN or infinite). From memory
/// of the paper and not checked against it: the sizes, the steps of r, five reuses, and that sign and mean go
/// together. Own: mean and max are those of |a| of the piece; bisection is of bit patterns, by nine; a
/// threshold of each sign; a search before its time once fewer than k / 2 are sent; the residual keeps what
/// the mean gets wrong. The paper's momentum correction is left to dgc; it does not quantise the output
/// layer, which only the caller knows.
/// Wire: all values as binary32, little endian; or sparse/wire.hpp, with one value for all entries if
/// quantised (2 bytes an entry), else 6. Collective: allgatherv, then each rank adds all. Loses to dense from
/// p = 4 / density ranks on if quantised (4000 at 0.1 %), and for parameters below `small`, which should go
/// into a dense bucket in the first place.
class RedSync final : public Codec {
 public:
  struct Settings {
    double density = 0;
    std::uint64_t small = 0;  ///< bytes
    std::uint64_t large = 0;
    std::uint64_t reuse = 0;
    bool quantised = true;
  };

  explicit RedSync(const Settings& settings)
      : settings_(settings), format_(settings.quantised ? Format::Values::one : Format::Values::fp32) {}

  Algebra algebra() const override { return Algebra::gatherable; }

  ErrorClass error_class() const override { return ErrorClass::feedback; }

  bool feedback() const override { return true; }

  std::size_t max_bytes(std::size_t count) const override {
    const std::size_t sparse = format_.bound(count, most(count));
    return sizeof(float) * count < settings_.small ? std::max(sparse, sizeof(float) * count) : sparse;
  }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override {
    const auto residual = state.array(residual_name).subspan(piece.offset, in.size());
    if (is_small(piece)) return all(in, residual, out);
    Side side = Side::both;
    if (settings_.quantised) side = piece.step % 2 == 0 ? Side::positive : Side::negative;
    if (sizeof(float) * piece.size < settings_.large) {
      trimmed(in, residual, side);
    } else {
      searched(piece, in, residual, side, state);
    }
    if (!settings_.quantised) return format_.write(in.size(), entries_.index, entries_.value, out);
    const std::array<float, 1> mean{mean_of(entries_.value)};
    for (std::size_t i = 0; i < entries_.size(); ++i)
      residual[entries_.index[i]] = remainder(entries_.value[i], mean[0]);
    return format_.write(in.size(), entries_.index, mean, out);
  }

  void decode(const Piece& piece, std::span<const std::byte> in, std::span<float> out) const override {
    if (!is_small(piece)) return format_.decode(in, out);
    require_size(in, out.size());
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
  }

  void decode_add(const Piece& piece, std::span<const std::byte> in, std::span<float> sum) const override {
    if (!is_small(piece)) return format_.decode_add(in, sum);
    require_size(in, sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      float value;
      std::memcpy(&value, in.data() + sizeof(float) * i, sizeof value);
      sum[i] += value;
    }
  }

 private:
  bool is_small(const Piece& piece) const { return sizeof(float) * piece.size < settings_.small; }

  std::size_t most(std::size_t count) const {
    return std::min(count, 2 * entries_of(settings_.density, count));
  }

  /// The residual may hold something only if another size rule made it.
  static std::size_t all(std::span<const float> in, std::span<float> residual, std::span<std::byte> out) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float value = canonical(in[i] + residual[i]);
      std::memcpy(out.data() + sizeof(float) * i, &value, sizeof value);
      residual[i] = 0;
    }
    return sizeof(float) * in.size();
  }

  static simd::Extent add(std::span<const float> in, std::span<float> residual) {
    simd::Extent extent;
    for (std::size_t first = 0; first < in.size(); first += run_length)
      simd::add_and_measure(in.data() + first, residual.data() + first,
                            std::min(run_length, in.size() - first), extent);
    return extent;
  }

  void trimmed(std::span<const float> in, std::span<float> residual, Side side) {
    const std::size_t wanted = entries_of(settings_.density, in.size());
    const simd::Extent extent = add(in, residual);
    Key threshold = infinity_key;
    if (extent.largest < infinity_key) {
      const auto thresholds = trimmed_thresholds(extent.sum / static_cast<double>(in.size()), extent.largest);
      std::array<std::uint64_t, simd::cuts> counts{};
      simd::count_passing(residual.data(), in.size(), thresholds, side, counts);
      const auto enough = std::ranges::find_if(counts, [wanted](std::uint64_t n) { return n >= wanted; });
      threshold =
          enough == counts.end() ? least_key : thresholds[static_cast<std::size_t>(enough - counts.begin())];
    }
    pick(finding(residual), residual, {.threshold = threshold, .side = side}, {.want = wanted}, entries_);
    keep_largest(entries_, std::max<std::size_t>(wanted, 1), residual);
  }

  void searched(const Piece& piece, std::span<const float> in, std::span<float> residual, Side side,
                State& state) {
    const std::string_view sign = side == Side::negative ? "-" : side == Side::positive ? "+" : "";
    double& kept = state.number(name_at(std::string("threshold") + std::string(sign), piece.offset));
    double& left = state.number(name_at(std::string("reuses") + std::string(sign), piece.offset));
    const std::size_t wanted = entries_of(settings_.density, in.size());
    const Limit limit{.want = wanted, .most = most(in.size())};
    if (left < 1) {
      const simd::Extent extent = add(in, residual);
      kept = extent.largest < infinity_key
                 ? search(residual, extent.sum / static_cast<double>(in.size()), extent.largest, side)
                 : infinity_key;
      // Not again one that only NaN and infinity reach.
      left = extent.largest < infinity_key ? static_cast<double>(settings_.reuse) : 0;
      pick(finding(residual), residual, {.threshold = static_cast<Key>(kept), .side = side}, limit, entries_);
      return;
    }
    left -= 1;
    const Cut cut{.threshold = static_cast<Key>(kept), .side = side};
    kept = pick(adding(in, residual), residual, cut, limit, entries_);
    if (2 * entries_.size() < wanted) left = 0;
  }

  /// The largest threshold tried that k to 2k values reach; with equal values there may be none, then the
  /// largest that k or more reach, or all if there are fewer.
  Key search(std::span<const float> values, double mean, Key largest, Side side) const {
    const std::size_t wanted = entries_of(settings_.density, values.size());
    const Key middle = std::clamp(key_of(static_cast<float>(mean)), least_key, std::max(largest, least_key));
    Interval interval{.low = middle, .high = std::max(largest, least_key) + 1};
    bool reached = false;  // whether interval.low is known to be reached by k or more
    while (interval.high - interval.low > 1 || !reached) {
      auto thresholds = inner_thresholds(interval);
      // The low end has to be counted once, too.
      if (!reached) thresholds[0] = interval.low;
      std::array<std::uint64_t, simd::cuts> counts{};
      simd::count_passing(values.data(), values.size(), thresholds, side, counts);
      std::size_t i = simd::cuts;
      while (i > 0 && counts[i - 1] < wanted) --i;
      if (i == 0 && reached) {
        interval.high = thresholds[0];
        continue;
      }
      if (i == 0) {
        // Few values are above the mean, or few are not 0 at all.
        if (interval.low == least_key) return least_key;
        interval = {.low = least_key, .high = interval.low};
        continue;
      }
      if (counts[i - 1] <= 2 * wanted) return thresholds[i - 1];
      if (i < simd::cuts) interval.high = thresholds[i];
      interval.low = thresholds[i - 1];
      reached = true;
    }
    return interval.low;
  }

  static float mean_of(std::span<const float> values) {
    if (values.empty()) return 0;
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    return canonical(static_cast<float>(sum / static_cast<double>(values.size())));
  }

  /// A mean that is NaN tells of values that are; the others stay.
  static float remainder(float value, float mean) {
    return std::isfinite(mean) || !std::isfinite(value) ? left_of(value, mean) : value;
  }

  static void require_size(std::span<const std::byte> in, std::size_t count) {
    if (in.size() != sizeof(float) * count)
      base::fail<MismatchError>("an encoding of {} elements of a small parameter has {} bytes, expected {}",
                                count, in.size(), sizeof(float) * count);
  }

  Settings settings_;
  Format format_;
  Entries entries_;
};

}  // namespace

std::unique_ptr<Codec> make_redsync(Options& options) {
  constexpr std::uint64_t most = 1U << 30U;
  const RedSync::Settings settings{
      .density = options.real("density", 0.001, 1e-7, 1),
      .small = options.number("small", 128, 0, most) << 10U,
      .large = options.number("large", 4096, 0, most) << 10U,
      .reuse = options.number("reuse", 5, 0, 1000000),
      .quantised = options.flag("quantised", true),
  };
  return std::make_unique<RedSync>(settings);
}

}  // namespace tutti::compress
