#include "bench/report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::bench;

namespace {

Timing timing(double us, std::size_t wrong = 0) {
  const double s = us * 1e-6;
  return {.spread = {s * 0.9, s * 0.95, s, s * 1.05, s * 1.1},
          .algbw = 4096 / s,
          .busbw = 4096 / s,
          .wrong = wrong};
}

std::vector<Row> compared() {
  std::vector<Row> rows(2);
  rows[0] = {.bytes = 4096, .count = 1024, .out_of_place = timing(10), .mpi = timing(20), .ratio = 2};
  rows[1] = {.bytes = 8192,
             .count = 2048,
             .out_of_place = timing(10),
             .mpi = timing(80),
             .ratio = 8,
             .bound_seconds = 5e-6};
  return rows;
}

std::size_t words_in(const std::string& line) {
  std::istringstream stream(line);
  std::size_t n = 0;
  for (std::string word; stream >> word;) ++n;
  return n;
}

}  // namespace

TEST_CASE("json has the ratios and every figure") {
  Options options;
  options.versus = true;
  const auto json = nlohmann::json::parse(footer(Format::json, options, compared(), 2, "some MPI"));
  CHECK(json["geomean_ratio"].get<double>() == Approx(4));
  CHECK(json["worst_ratio"].get<double>() == Approx(2));
  CHECK(json["rows"].size() == 2);
  CHECK(json["rows"][1]["part_of_bound"].get<double>() == Approx(0.5));
  CHECK(json["rows"][0]["out_of_place"]["median_us"].get<double>() == Approx(10));
  CHECK(json["wrong"] == 0);
  CHECK(json["ranks"] == 2);
}

TEST_CASE("rows in the columns of nccl-tests") {
  Options options;
  options.in_place = true;
  Row row{.bytes = 4096, .count = 1024, .out_of_place = timing(10), .in_place = timing(12)};
  const std::string text = line(Format::nccl, options, row);
  CHECK_THAT(text, ContainsSubstring("4096") && ContainsSubstring("10.00") && ContainsSubstring("12.00"));
  CHECK(words_in(text) == 5 + 4 + 4 + 1);
  row.in_place->checked = false;
  CHECK_THAT(line(Format::nccl, options, row), ContainsSubstring("N/A"));
}

TEST_CASE("csv lines have as many fields as their header") {
  Options options;
  const auto commas = [](const std::string& text) { return std::count(text.begin(), text.end(), ','); };
  for (const Row& row : compared())
    CHECK(commas(line(Format::csv, options, row)) == commas(header(Format::csv, options, 2, "some MPI")));
}

TEST_CASE("wrong values and noise are said") {
  Options options;
  options.versus = true;
  auto rows = compared();
  CHECK(wrong(rows) == 0);
  CHECK(noisy(rows) == 0);
  rows[0].out_of_place.wrong = 3;
  rows[1].mpi->spread.p75 = 1;
  CHECK(wrong(rows) == 3);
  CHECK(noisy(rows) == 1);
  const std::string text = footer(Format::nccl, options, rows, 2, "some MPI");
  CHECK_THAT(text, ContainsSubstring("Out of bounds values : 3 FAILED") &&
                       ContainsSubstring("noisy: in 1 of 2 rows"));
}

TEST_CASE("formats by their names") {
  CHECK(format_from("osu") == Format::osu);
  CHECK_THROWS_WITH(format_from("xml"), ContainsSubstring("nccl, osu, csv, json"));
}
