#include "data/csv.hpp"

#include <charconv>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/file.hpp"
#include "data/order.hpp"

namespace tutti::data {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \r\t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \r\t") - first + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto end = line.find_first_of(",;\t");
    cells.push_back(trim(line.substr(0, end)));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

bool to_number(std::string_view cell, double& value) {
  if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size();
}

void add_row(Table& table, const std::vector<std::string_view>& cells, std::size_t line,
             const std::string& what) {
  if (table.rows == 0) table.columns = cells.size();
  base::require(cells.size() == table.columns, "{} line {}: {} values where the first row has {}", what, line,
                cells.size(), table.columns);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    double value = 0;
    base::require(to_number(cells[c], value), "{} line {} column {}: '{}' is not a number", what, line, c + 1,
                  cells[c].substr(0, 40));
    base::require(std::isfinite(value),
                  "{} line {} column {}: the value is {}; training needs finite numbers", what, line, c + 1,
                  value);
    table.values.push_back(value);
  }
  table.lines.push_back(line);
  ++table.rows;
}

std::size_t label_column(const SourceOptions& options, std::size_t columns) {
  if (options.label_column == "first") return 0;
  if (options.label_column == "last") return columns - 1;
  std::size_t column = columns;
  const std::string& text = options.label_column;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), column);
  base::require(error == std::errc() && end == text.data() + text.size() && column < columns,
                "label column '{}': expected first, last or a number from 0 to {}", text, columns - 1);
  return column;
}

/// Moves and scales each feature by its mean and deviation over the training part.
void standardize(Split& split) {
  const std::size_t features = split.train.features;
  for (std::size_t f = 0; f < features; ++f) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < split.train.samples(); ++i)
      sum += static_cast<double>(split.train.x[i * features + f]);
    const double mean = sum / static_cast<double>(split.train.samples());
    for (std::size_t i = 0; i < split.train.samples(); ++i) {
      const double d = static_cast<double>(split.train.x[i * features + f]) - mean;
      squares += d * d;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(split.train.samples()));
    for (Dataset* part : {&split.train, &split.test}) {
      for (std::size_t i = 0; i < part->samples(); ++i) {
        float& x = part->x[i * features + f];
        // A feature that is constant in training says nothing.
        x = deviation > 0 ? static_cast<float>((static_cast<double>(x) - mean) / deviation) : 0.0F;
      }
    }
  }
}

constexpr double most_classes = 65536;

}  // namespace

Table parse_csv(std::string_view text, const std::string& what) {
  Table table;
  std::size_t line = 0;
  bool first = true;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view row = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line;
    if (row.empty()) continue;
    const auto cells = cells_of(row);
    double value = 0;
    bool header = false;
    for (const auto cell : cells) header = header || (first && !cell.empty() && !to_number(cell, value));
    if (!header) add_row(table, cells, line, what);
    first = false;
  }
  return table;
}

Split load_csv(const SourceOptions& options) {
  const std::string what = fmt::format("'{}'", options.source);
  const Table table = parse_csv(read_file(options.source), what);
  base::require(table.rows >= 2, "{}: {} samples; at least one to train and one to test are needed", what,
                table.rows);
  base::require(table.columns >= 2, "{}: {} value a line; at least one feature and a label are needed", what,
                table.columns);
  base::require(options.test_part > 0 && options.test_part < 1,
                "test part {}: expected more than 0 and less than 1", options.test_part);
  const std::size_t label = label_column(options, table.columns);
  Split split;
  std::size_t classes = 0;
  const auto held_out =
      std::max<std::size_t>(1, static_cast<std::size_t>(options.test_part * static_cast<double>(table.rows)));
  const auto order = permutation(table.rows, options.split_seed, 0);
  for (std::size_t i = 0; i < table.rows; ++i) {
    const auto row = table.row(order[i]);
    Dataset& part = i + held_out < table.rows ? split.train : split.test;
    for (std::size_t c = 0; c < table.columns; ++c) {
      if (c != label) part.x.push_back(static_cast<float>(row[c]));
    }
    if (options.regression) {
      part.targets.push_back(static_cast<float>(row[label]));
      continue;
    }
    base::require(row[label] >= 0 && row[label] == std::floor(row[label]) && row[label] < most_classes,
                  "{} line {}: label {} is out of range: expected a class, a whole number from 0 to {} (for "
                  "real targets use --loss squared)",
                  what, table.lines[order[i]], row[label], most_classes - 1);
    part.labels.push_back(static_cast<std::uint32_t>(row[label]));
    classes = std::max(classes, static_cast<std::size_t>(row[label]) + 1);
  }
  for (Dataset* part : {&split.train, &split.test}) {
    part->name = options.source;
    part->features = table.columns - 1;
    part->classes = classes;
  }
  if (options.standardize) standardize(split);
  return split;
}

}  // namespace tutti::data
