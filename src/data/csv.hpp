#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// Rows of numbers, all of the same length.
struct Table {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;
  std::vector<std::size_t> lines;  ///< line of the file that each row stands on, from 1

  std::span<const double> row(std::size_t i) const { return std::span(values).subspan(i * columns, columns); }
};

/// Numbers between commas, semicolons or tabs. Empty lines are skipped; a first line with a word in it is a
/// header. Throws InvalidArgument that names `what`, line and column for anything that is not a finite
/// number, and for a line of another length.
Table parse_csv(std::string_view text, const std::string& what);

}  // namespace tutti::data
