#include "gradient/sparse.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "kernel/kernel.hpp"

namespace tutti::gradient {

SparseGradient::SparseGradient(std::string name, std::size_t rows, std::size_t width)
    : name_(std::move(name)),
      rows_(rows),
      width_(width),
      result_(std::make_shared<exchange::RowSet>()),
      sent_(std::make_shared<std::uint64_t>(0)) {}

void SparseGradient::add(std::span<const std::uint32_t> rows, std::span<const float> values) {
  base::require(values.size() == rows.size() * width_,
                "the gradient of '{}': {} values for {} rows, expected {} for each", name_, values.size(),
                rows.size(), width_);
  for (const std::uint32_t row : rows)
    base::require(row < rows_, "the gradient of '{}': row {} of a matrix of {} rows", name_, row, rows_);
  numbers_.insert(numbers_.end(), rows.begin(), rows.end());
  values_.insert(values_.end(), values.begin(), values.end());
}

std::shared_ptr<exchange::RowSet> SparseGradient::merged() {
  auto set = std::make_shared<exchange::RowSet>();
  std::vector<std::size_t> order(numbers_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Stable: rows that are repeated are added in the order in which they came.
  std::ranges::stable_sort(order, {}, [this](std::size_t i) { return numbers_[i]; });
  set->rows.reserve(order.size());
  set->values.reserve(order.size() * width_);
  for (const std::size_t i : order) {
    const auto values = std::span(values_).subspan(i * width_, width_);
    if (!set->rows.empty() && set->rows.back() == numbers_[i]) {
      float* sum = set->values.data() + (set->rows.size() - 1) * width_;
      for (std::size_t c = 0; c < width_; ++c) sum[c] += values[c];
    } else {
      set->rows.push_back(numbers_[i]);
      set->values.insert(set->values.end(), values.begin(), values.end());
    }
  }
  clear();
  return set;
}

void SparseGradient::clear() {
  numbers_.clear();
  values_.clear();
}

Work SparseGradient::start(Communicator& communicator, Op op) {
  const auto mine = merged();
  parts_ = op == Op::average ? communicator.size() : 1;
  if (!dense_)
    return Work(exchange::start_rows_allreduce(
        communicator.state(),
        {.rows = rows_, .width = width_, .op = op, .mine = mine, .result = result_, .sent = sent_}));
  whole_.assign(rows_ * (width_ + 1), 0.0F);
  for (std::size_t i = 0; i < mine->rows.size(); ++i) {
    float* row = whole_.data() + mine->rows[i] * (width_ + 1);
    std::copy_n(mine->values.data() + i * width_, width_, row);
    row[width_] = 1;
  }
  return communicator.allreduce_async(std::span(whole_), op,
                                      {.name = "sparse gradients", .order = Order::canonical});
}

void SparseGradient::finish() {
  if (dense_) {
    *result_ = {};
    double sent = 0;
    for (std::size_t r = 0; r < rows_; ++r) {
      const float* row = whole_.data() + r * (width_ + 1);
      if (row[width_] == 0) continue;
      sent += row[width_];
      result_->rows.push_back(static_cast<std::uint32_t>(r));
      result_->values.insert(result_->values.end(), row, row + width_);
    }
    *sent_ = static_cast<std::uint64_t>(std::llround(sent * parts_));
  }
  // Each rank receives all that the others have, 4 bytes and the values of each row; of a dense allreduce,
  // twice the matrix with one more element in each row.
  dense_ = *sent_ >= 2 * rows_;
}

SparseRows SparseGradient::result() const {
  return {.rows = result_->rows, .values = result_->values};
}

void SparseGradient::divide(Rank divisor) {
  auto& values = result_->values;
  kernel::convert(DType::f32, Op::average, {values.data(), DType::f32}, {values.data(), DType::f32},
                  values.size(), static_cast<std::uint64_t>(divisor));
}

}  // namespace tutti::gradient
