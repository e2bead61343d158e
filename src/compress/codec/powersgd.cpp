#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "compress/arithmetic/lowrank.hpp"
#include "compress/codec/codecs.hpp"
#include "compress/simd/lowrank.hpp"

namespace tutti::compress {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::string_view warm_name = "q";

bool finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

/// Makes the columns of P (rows × rank, row by row) orthonormal, the first one first. One that adds nothing
/// to those before it becomes 0. In double and in one order: the same bits on every rank.
void orthonormalize(std::span<float> p, std::size_t rank) {
  const std::size_t rows = p.size() / rank;
  std::vector<double> done(p.size());  // column by column
  for (std::size_t c = 0; c < rank; ++c) {
    const auto column = std::span(done).subspan(c * rows, rows);
    for (std::size_t i = 0; i < rows; ++i) column[i] = static_cast<double>(p[i * rank + c]);
    const auto norm_of = [&] {
      double sum = 0;
      for (const double x : column) sum += x * x;
      return std::sqrt(sum);
    };
    const double before = norm_of();
    // Twice is enough (Giraud, Langou, Rozloznik 2005).
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t other = 0; other < c; ++other) {
        const auto known = std::span(done).subspan(other * rows, rows);
        double along = 0;
        for (std::size_t i = 0; i < rows; ++i) along += known[i] * column[i];
        for (std::size_t i = 0; i < rows; ++i) column[i] -= along * known[i];
      }
    }
    const double norm = norm_of();
    // What binary32 sums leave of a column that depends on others is rounding, and no direction.
    const double factor = norm > before * 1e-6 ? 1 / norm : 0;
    for (std::size_t i = 0; i < rows; ++i) {
      column[i] *= factor;
      p[i * rank + c] = static_cast<float>(column[i]);
    }
  }
}

/// powersgd: a matrix M of m × n (of a = gradient + residual) as P Qᵀ of rank r (Vogels, Karimireddy, Jaggi,
/// PowerSGD, NeurIPS 2019, algorithms 1 and 2): P = M Q with the Q of the step before (warm start; drawn at
/// first, and again for columns that are 0), summed up over ranks and made orthonormal, then Q = Mᵀ P, summed
/// up. The residual keeps M - P Qᵀ with this rank's own Q. Parameters that are no matrix, and matrices that
/// this would not make half as small, go as they are.
///
/// Wire: m · r binary32, then in a second round that depends on it n · r. Collective: two allreduces. Nothing
/// but sums travels, so its cost does not grow with the rank count as that of sparse codecs does. A value
/// that is not finite makes all of the matrix NaN for everyone.
///
/// `warmup`: so many steps at the start go dense.
///
/// Loses to dense where two latencies and six passes over M cost more than the wire saves: inside a node, and
/// from about 10 Gbit/s; for small models (PyTorch's users report scaling that two dependent allreduces
/// limit); and to int8 in accuracy where gradients are far from low rank.
class PowerSgd final : public LinearCodec {
 public:
  PowerSgd(std::size_t rank, std::uint64_t warmup) : rank_(rank), warmup_(warmup) {}

  ErrorClass error_class() const override { return ErrorClass::feedback; }

  bool feedback() const override { return true; }

  std::uint64_t exact_steps() const override { return warmup_; }

  bool shared(std::string_view array) const override { return array == warm_name; }

  std::size_t rounds() const override { return 2; }

  bool whole() const override { return true; }

  std::size_t max_bytes(std::size_t count) const override { return sizeof(float) * count; }

  std::size_t sums(const Piece& piece, std::size_t count, std::size_t round) const override {
    const simd::LowRank shape = shape_of(piece, count);
    if (shape.rank == 0) return round == 0 ? count : 0;
    return shape.rank * (round == 0 ? shape.rows : shape.columns);
  }

  void contribute(const Piece& piece, std::size_t round, std::span<const float> in, State& state,
                  std::span<float> before, std::span<float> out) override {
    const simd::LowRank shape = shape_of(piece, in.size());
    if (shape.rank == 0) {
      if (round == 0) std::ranges::copy(in, out.begin());
      return;
    }
    const std::span<float> matrix = state.array(residual_name);
    if (round == 0) {
      const std::span<float> warm = state.array(warm_name, shape.rank * shape.columns);
      draw_what_is_zero(piece, shape, warm);
      simd::add_and_project(shape, in.data(), matrix.data(), warm.data(), out.data());
      return;
    }
    if (!finite(before)) {
      std::ranges::fill(before, nan);
      std::ranges::fill(out, nan);
      // They are told by what is sent; kept, they would spoil every later step too.
      for (float& x : matrix) x = std::isfinite(x) ? x : 0;
      return;
    }
    orthonormalize(before, shape.rank);
    simd::project_back(shape, matrix.data(), before.data(), out.data());
    simd::expand(shape, simd::Into::subtract, before.data(), out.data(), matrix.data());
  }

  void conclude(const Piece& piece, std::span<const float> sums, State& state,
                std::span<float> values) override {
    const simd::LowRank shape = shape_of(piece, values.size());
    apply(shape, sums, simd::Into::set, values);
    if (shape.rank == 0 || !finite(sums)) return;
    const auto warm = state.array(warm_name, shape.rank * shape.columns);
    const auto q = sums.subspan(shape.rank * shape.rows);
    for (std::size_t i = 0; i < q.size(); ++i) warm[i] = q[i] / static_cast<float>(piece.ranks);
  }

  std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                     std::span<std::byte> out) override {
    const std::size_t first = sums(piece, in.size(), 0);
    std::vector<float> all(first + sums(piece, in.size(), 1));
    const auto before = std::span(all).first(first);
    contribute(piece, 0, in, state, {}, before);
    const auto own = std::span(all).subspan(first);
    contribute(piece, 1, in, state, before, own);
    if (!own.empty() && finite(own)) std::ranges::copy(own, state.array(warm_name, own.size()).begin());
    std::memcpy(out.data(), all.data(), sizeof(float) * all.size());
    return sizeof(float) * all.size();
  }

  void decode(const Piece& piece, std::span<const std::byte> in, std::span<float> out) const override {
    expand(piece, in, simd::Into::set, out);
  }

  void decode_add(const Piece& piece, std::span<const std::byte> in, std::span<float> sum) const override {
    expand(piece, in, simd::Into::add, sum);
  }

 private:
  /// Of rank 0: it goes as it is.
  simd::LowRank shape_of(const Piece& piece, std::size_t count) const {
    if (piece.rows == 0 || count != piece.size) return {};
    const std::size_t rows = piece.rows;
    const std::size_t columns = count / rows;
    if (2 * rank_ * (rows + columns) > count) return {};
    return {.rows = rows, .columns = columns, .rank = rank_};
  }

  /// A column that is 0 would stay so for ever.
  static void draw_what_is_zero(const Piece& piece, const simd::LowRank& shape, std::span<float> q) {
    Draws draws = piece.draws();
    draws.rank = 0;
    for (std::size_t c = 0; c < shape.rank; ++c) {
      const auto column = q.subspan(c * shape.columns, shape.columns);
      if (std::ranges::any_of(column, [](float x) { return x != 0; })) continue;
      for (std::size_t j = 0; j < column.size(); ++j) column[j] = centered(draws.of(c * shape.columns + j));
    }
  }

  static void apply(const simd::LowRank& shape, std::span<const float> sums, simd::Into into,
                    std::span<float> values) {
    if (shape.rank > 0) {
      simd::expand(shape, into, sums.data(), sums.data() + shape.rank * shape.rows, values.data());
    } else if (into == simd::Into::set) {
      std::ranges::copy(sums, values.begin());
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += sums[i];
    }
  }

  void expand(const Piece& piece, std::span<const std::byte> in, simd::Into into,
              std::span<float> values) const {
    const std::size_t expected = sums(piece, values.size(), 0) + sums(piece, values.size(), 1);
    if (in.size() != sizeof(float) * expected)
      base::fail<MismatchError>("an encoding of {} elements has {} bytes, expected {}", values.size(),
                                in.size(), sizeof(float) * expected);
    std::vector<float> all(expected);
    if (expected > 0) std::memcpy(all.data(), in.data(), in.size());
    apply(shape_of(piece, values.size()), all, into, values);
  }

  std::size_t rank_;
  std::uint64_t warmup_;
};

}  // namespace

std::unique_ptr<Codec> make_powersgd(Options& options) {
  return std::make_unique<PowerSgd>(options.number("rank", 4, 1, 64),
                                    options.number("warmup", 0, 0, most_steps));
}

}  // namespace tutti::compress
