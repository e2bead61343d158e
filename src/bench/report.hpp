#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.hpp"

namespace tutti::bench {

enum class Format : std::uint8_t { nccl, osu, csv, json };

/// Throws InvalidArgument that lists the names.
Format format_from(std::string_view name);

/// What stands above the rows; empty for json.
std::string header(Format format, const Options& options, Rank ranks, const std::string& mpi);
/// One size; empty for json.
std::string line(Format format, const Options& options, const Row& row);
/// What stands below: wrong values, ratios, and whether the machine was too noisy; for json, everything.
std::string footer(Format format, const Options& options, const std::vector<Row>& rows, Rank ranks,
                   const std::string& mpi);

/// Wrong elements in all rows.
std::size_t wrong(const std::vector<Row>& rows);
/// Rows whose samples differ so much that their medians say little.
std::size_t noisy(const std::vector<Row>& rows);

}  // namespace tutti::bench
