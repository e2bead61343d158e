#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exchange/rows.hpp"
#include "tutti/communicator.hpp"
#include "tutti/reducer.hpp"

namespace tutti::gradient {

/// The gradient of one matrix of which a step touches some rows. They travel as numbers and values while that
/// is less than the whole matrix, otherwise as a dense allreduce: the result is the same to the bit, rows
/// that no rank has had are in neither. Which of them follows from the last step's rows of all ranks.
class SparseGradient {
 public:
  SparseGradient(std::string name, std::size_t rows, std::size_t width);

  /// This rank's gradient += these rows, in any order, also repeated. Throws InvalidArgument.
  void add(std::span<const std::uint32_t> rows, std::span<const float> values);
  void clear();

  /// Starts the allreduce of what was added since the last.
  Work start(Communicator& communicator, Op op);
  /// After it is done. The rows that any rank had, in ascending order.
  void finish();
  SparseRows result() const;
  /// result /= divisor
  void divide(Rank divisor);

  bool dense() const { return dense_; }

 private:
  std::shared_ptr<exchange::RowSet> merged();

  std::string name_;
  std::size_t rows_;
  std::size_t width_;
  bool dense_ = false;
  Rank parts_ = 1;                      ///< what the allreduce divides by
  std::vector<std::uint32_t> numbers_;  ///< as added
  std::vector<float> values_;
  std::shared_ptr<exchange::RowSet> result_;
  std::shared_ptr<std::uint64_t> sent_;
  /// Each row with one more element: how many ranks have it. Theirs until the allreduce is done.
  std::vector<float> whole_;
};

}  // namespace tutti::gradient
