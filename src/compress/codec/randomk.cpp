#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "compress/arithmetic/select.hpp"
#include "compress/codec/codecs.hpp"
#include "compress/simd/select.hpp"
#include "compress/sparse/pick.hpp"

namespace tutti::compress {
namespace {

/// Calls take(entry, element) for every entry of a piece, in order. The draws leave out the rank.
class Support {
 public:
  Support(const Piece& piece, std::size_t count, std::size_t entries)
      : draws_(piece.draws()), offset_(piece.offset), count_(count), entries_(entries) {
    draws_.rank = 0;
  }

  std::size_t element(std::size_t entry) {
    const std::uint64_t number = offset_ + entry;
    if (number / 4 != group_) four_ = draws_.group(group_ = number / 4);
    return run_of(entry, entries_, count_).drawn(four_[number % 4]);
  }

 private:
  Draws draws_;
  std::uint64_t offset_;
  std::size_t count_;
  std::size_t entries_;
  std::uint64_t group_ = std::numeric_limits<std::uint64_t>::max();
  std::array<std::uint32_t, 4> four_{};
};

/// randomk: k = ceil(density · n) elements of a piece of n, the same on every rank since seed, step and
/// parameter draw them and not the rank. One is drawn out of each of k runs of equal length, so that they are
/// sorted and differ (the random-k of Stich, Cordonnier, Jaggi, Sparsified SGD with memory, 2018, draws k of
/// n at once; each element is as likely here). Wire: k binary32, little endian, no indices. feedback=on: the
/// residual keeps the rest. feedback=off: values are scaled by n / k, which is right in the mean and noisy.
/// If any value is NaN or infinite, drawn or not, all values sent are NaN. Collective: allreduce of k values.
/// Never moves more than dense, but at equal density it learns far slower than topk (39 % against 96.7 % on
/// MNIST at 1 %): a baseline.
class RandomK final : public LinearCodec {
 public:
  RandomK(double density, bool feedback) : density_(density), feedback_(feedback) {}

  ErrorClass error_class() const override { return ErrorClass::feedback; }

  bool feedback() const override { return feedback_; }

  std::size_t max_bytes(std::size_t count) const override {
    return sizeof(float) * entries_of(density_, count);
  }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override {
    const std::size_t entries = entries_of(density_, in.size());
    base::require(in.size() <= 0xFFFFFFFFU, "randomk: a piece of {} elements has to be cut", in.size());
    const std::size_t wrong = feedback_ ? send_with_feedback(piece, in, state, out) : send(piece, in, out);
    if (wrong > 0) {
      for (std::size_t i = 0; i < entries; ++i) put(out, i, std::numeric_limits<float>::quiet_NaN());
    }
    return max_bytes(in.size());
  }

  void decode(const Piece& piece, std::span<const std::byte> in, std::span<float> out) const override {
    const std::size_t entries = require_size(in, out.size());
    std::ranges::fill(out, 0.0F);
    Support support(piece, out.size(), entries);
    for (std::size_t i = 0; i < entries; ++i) out[support.element(i)] = get(in, i);
  }

  void decode_add(const Piece& piece, std::span<const std::byte> in, std::span<float> sum) const override {
    const std::size_t entries = require_size(in, sum.size());
    Support support(piece, sum.size(), entries);
    for (std::size_t i = 0; i < entries; ++i) sum[support.element(i)] += get(in, i);
  }

 private:
  /// These two return how many values are NaN or infinite.
  std::size_t send_with_feedback(const Piece& piece, std::span<const float> in, State& state,
                                 std::span<std::byte> out) {
    const auto residual = state.array(residual_name).subspan(piece.offset, in.size());
    const std::size_t entries = entries_of(density_, in.size());
    Support support(piece, in.size(), entries);
    const Pass add = adding(in, residual);
    std::array<std::uint32_t, run_length> found;
    std::size_t wrong = 0;
    std::size_t entry = 0;
    std::size_t element = entries > 0 ? support.element(0) : in.size();
    for (std::size_t first = 0; first < in.size(); first += run_length) {
      const std::size_t end = std::min(in.size(), first + run_length);
      const std::size_t here = add(first, end - first, {.threshold = infinity_key}, found.data());
      while (element < end) {
        put(out, entry, residual[element]);
        residual[element] = 0;
        element = ++entry < entries ? support.element(entry) : in.size();
      }
      // They are told by what is sent; kept, they would spoil every later step too.
      for (std::size_t i = 0; i < here; ++i) residual[first + found[i]] = 0;
      wrong += here;
    }
    return wrong;
  }

  std::size_t send(const Piece& piece, std::span<const float> in, std::span<std::byte> out) const {
    const std::size_t entries = entries_of(density_, in.size());
    Support support(piece, in.size(), entries);
    const auto factor =
        entries > 0 ? static_cast<float>(static_cast<double>(in.size()) / static_cast<double>(entries))
                    : 0.0F;
    for (std::size_t i = 0; i < entries; ++i) put(out, i, in[support.element(i)] * factor);
    std::array<std::uint32_t, run_length> found;
    std::size_t wrong = 0;
    for (std::size_t first = 0; first < in.size(); first += run_length)
      wrong += simd::find(in.data() + first, std::min(run_length, in.size() - first),
                          {.threshold = infinity_key}, found.data());
    return wrong;
  }

  static void put(std::span<std::byte> out, std::size_t entry, float value) {
    std::memcpy(out.data() + sizeof(float) * entry, &value, sizeof value);
  }

  static float get(std::span<const std::byte> in, std::size_t entry) {
    float value;
    std::memcpy(&value, in.data() + sizeof(float) * entry, sizeof value);
    return value;
  }

  std::size_t require_size(std::span<const std::byte> in, std::size_t count) const {
    if (in.size() != max_bytes(count))
      base::fail<MismatchError>("an encoding of {} elements has {} bytes, expected {}", count, in.size(),
                                max_bytes(count));
    return entries_of(density_, count);
  }

  double density_;
  bool feedback_;
};

}  // namespace

std::unique_ptr<Codec> make_randomk(Options& options) {
  const double density = options.real("density", 0.01, 1e-7, 1);
  return std::make_unique<RandomK>(density, options.flag("feedback", true));
}

}  // namespace tutti::compress
