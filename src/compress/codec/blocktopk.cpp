#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "compress/arithmetic/rounding.hpp"
#include "compress/arithmetic/select.hpp"
#include "compress/codec/codecs.hpp"
#include "compress/sparse/pick.hpp"

namespace tutti::compress {
namespace {

/// In the place of an index: no entry.
constexpr std::uint16_t nothing = std::numeric_limits<std::uint16_t>::max();

constexpr std::string_view thresholds_name = "threshold";

template <class T>
T load(std::span<const std::byte> from, std::size_t i) {
  T value;
  std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
  return value;
}

template <class T>
void store(std::span<std::byte> to, std::size_t i, T value) {
  std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
}

/// blocktopk: of each block of a = gradient + residual the k = ceil(density · block) largest, of equal ones
/// those with the lowest index; the residual keeps the rest. A sparse allreduce of bounded volume, after
/// Ok-Topk (Li, Hoefler, Near-optimal sparse allreduce, PPoPP 2022): entries go to the owner of their region,
/// who adds what all have sent and sends on only the k largest sums; what it leaves out goes with the next
/// sums. Unlike there, regions and their numbers of entries are fixed by the blocks: nothing has to be
/// balanced, thresholds are exact, and lengths are known beforehand; in exchange, blocks have equal shares of
/// entries however unlike they are. Wire: of each block the values (binary32, or its upper half with
/// values=bf16, whose rounding stays in the residual), then u16 indices in the block, ascending, 65535 where
/// fewer than k are not 0. Collective: slice owners. A rank receives 2 · (p - 1)/p · 6k bytes at any rank
/// count, 0.015 of a dense ring at 1 %; an allgather of as many entries takes p/2 times that. Loses to dense
/// where selecting (a pass over the gradient, and another over each slice of sums) takes longer than the
/// wire: inside a node.
class BlockTopK final : public Codec {
 public:
  BlockTopK(double density, std::size_t block, bool rounds)
      : density_(density), block_(block), rounds_(rounds) {}

  Algebra algebra() const override { return Algebra::reencodable; }

  ErrorClass error_class() const override { return ErrorClass::feedback; }

  bool feedback() const override { return true; }

  std::size_t block() const override { return block_; }

  std::size_t max_bytes(std::size_t count) const override {
    const std::size_t entries = count / block_ * in_block(block_) + in_block(count % block_);
    return entries * (value_bytes() + sizeof(std::uint16_t));
  }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override {
    const auto residual = state.array(residual_name).subspan(piece.offset, in.size());
    const auto thresholds = state.array(thresholds_name, (piece.size + block_ - 1) / block_);
    std::size_t used = 0;
    for (std::size_t at = 0; at < in.size(); at += block_) {
      const std::size_t count = std::min(block_, in.size() - at);
      select(in.subspan(at, count), residual.subspan(at, count), thresholds[(piece.offset + at) / block_]);
      used += write(residual.subspan(at, count), out.subspan(used));
    }
    return used;
  }

  void decode(const Piece& piece, std::span<const std::byte> in, std::span<float> out) const override {
    std::ranges::fill(out, 0.0F);
    decode_add(piece, in, out);
  }

  void decode_add(const Piece& /*piece*/, std::span<const std::byte> in,
                  std::span<float> sum) const override {
    if (in.size() != max_bytes(sum.size()))
      base::fail<MismatchError>(
          "an encoding of {} elements by blocktopk has {} bytes, expected {}; do all "
          "ranks use the same codec?",
          sum.size(), in.size(), max_bytes(sum.size()));
    for (std::size_t at = 0; at < sum.size(); at += block_) {
      const auto part = sum.subspan(at, std::min(block_, sum.size() - at));
      const std::size_t bytes = max_bytes(part.size());
      add(in.first(bytes), part);
      in = in.subspan(bytes);
    }
  }

 private:
  std::size_t in_block(std::size_t count) const { return entries_of(density_, count); }

  std::size_t value_bytes() const { return rounds_ ? sizeof(std::uint16_t) : sizeof(float); }

  /// The threshold of the last time, somewhat lowered, finds nearly all candidates in one pass; if it does
  /// not, another follows: the choice is exact.
  void select(std::span<const float> in, std::span<float> residual, float& threshold) {
    constexpr Key slack = 1U << 18U;  // 3 to 6 % of it
    const Key last = key_of(threshold);
    Key guess = last > slack + least_key && last < infinity_key ? last - slack : least_key;
    const std::size_t wanted = in_block(in.size());
    if (last == 0) {
      const Sampling sampling{.first = 0, .stride = std::max<std::size_t>(1, in.size() / 512)};
      guess = guess_threshold(in.size(), wanted, sampling, true,
                              [&](std::size_t i) { return in[i] + residual[i]; });
    }
    pick_exactly(adding(in, residual), residual, {.threshold = guess}, wanted, entries_);
    float smallest = std::numeric_limits<float>::infinity();
    for (const float value : entries_.value) smallest = std::min(smallest, std::abs(value));
    threshold = entries_.size() == 0 ? 0.0F : smallest;
    wanted_ = wanted;
  }

  std::size_t write(std::span<float> residual, std::span<std::byte> out) {
    const auto values = out.first(wanted_ * value_bytes());
    const auto indices = out.subspan(values.size(), wanted_ * sizeof(std::uint16_t));
    for (std::size_t i = 0; i < wanted_; ++i) {
      const bool there = i < entries_.size();
      const float value = there ? entries_.value[i] : 0.0F;
      store(indices, i, there ? static_cast<std::uint16_t>(entries_.index[i]) : nothing);
      if (!rounds_) {
        store(values, i, value);
        continue;
      }
      const auto rounded = to_bfloat16(value);
      store(values, i, rounded);
      if (there) residual[entries_.index[i]] = left_of(value, from_bfloat16(rounded));
    }
    return values.size() + indices.size();
  }

  void add(std::span<const std::byte> in, std::span<float> sum) const {
    const std::size_t count = in_block(sum.size());
    const auto values = in.first(count * value_bytes());
    const auto indices = in.subspan(values.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = load<std::uint16_t>(indices, i);
      if (index == nothing) break;
      if (index >= sum.size())
        base::fail<MismatchError>(
            "an encoding by blocktopk has index {} in a block of {} elements; do all "
            "ranks use the same codec?",
            index, sum.size());
      sum[index] += rounds_ ? from_bfloat16(load<std::uint16_t>(values, i)) : load<float>(values, i);
    }
  }

  double density_;
  std::size_t block_;
  bool rounds_;
  Entries entries_;
  std::size_t wanted_ = 0;  ///< entries of the block in hand
};

}  // namespace

std::unique_ptr<Codec> make_blocktopk(Options& options) {
  const double density = options.real("density", 0.01, 1e-7, 1);
  const std::size_t block = options.number("block", 8192, 32, nothing);
  constexpr std::array<std::string_view, 2> forms{"fp32", "bf16"};
  return std::make_unique<BlockTopK>(density, block, options.choice("values", forms) == "bf16");
}

}  // namespace tutti::compress
