#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/communicator_state.hpp"

namespace tutti::exchange {

/// Some rows of a matrix: their numbers, ascending, and their elements, row by row.
struct RowSet {
  std::vector<std::uint32_t> rows;
  std::vector<float> values;
};

/// One allreduce of a matrix of which each rank has some rows; the others are zero.
struct RowsRequest {
  std::uint64_t rows = 0;  ///< of the whole matrix
  std::size_t width = 0;   ///< elements of a row
  Op op = Op::average;     ///< or sum
  std::shared_ptr<const RowSet> mine;
  std::shared_ptr<RowSet> result;       ///< out: the rows that any rank has
  std::shared_ptr<std::uint64_t> sent;  ///< out: rows of all ranks together
};

/// Starts it: every rank gets all rows of all others (4 bytes and the elements of each), and adds them up in
/// canonical order, absent ones as zeros: the bits of a dense allreduce. Loses to that when the ranks' rows
/// together are more than about twice those of the matrix. Throws (when it is waited for) MismatchError if
/// what comes cannot be rows of this matrix.
std::shared_ptr<engine::Pending> start_rows_allreduce(engine::CommunicatorState& communicator,
                                                      const RowsRequest& request);

}  // namespace tutti::exchange
