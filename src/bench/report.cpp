#include "bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace tutti::bench {
namespace {

/// Half of the samples are further apart than this part of the median.
constexpr double too_wide = 0.5;

double us(double seconds) {
  return seconds * 1e6;
}

std::string wrong_text(const Timing& timing) {
  return timing.checked ? fmt::format("{}", timing.wrong) : "N/A";
}

double worst_ratio(const std::vector<Row>& rows) {
  double worst = 0;
  for (const Row& row : rows) worst = worst == 0 ? row.ratio : std::min(worst, row.ratio);
  return worst;
}

double mean_ratio(const std::vector<Row>& rows) {
  std::vector<double> ratios;
  for (const Row& row : rows) ratios.push_back(row.ratio);
  return geometric_mean(ratios);
}

nlohmann::ordered_json json_of(const Timing& timing) {
  return {{"median_us", us(timing.spread.median)},
          {"p1_us", us(timing.spread.p1)},
          {"p99_us", us(timing.spread.p99)},
          {"algbw_GBps", timing.algbw / 1e9},
          {"busbw_GBps", timing.busbw / 1e9},
          {"wrong", timing.checked ? nlohmann::ordered_json(timing.wrong) : nullptr}};
}

nlohmann::ordered_json json_of(const Row& row) {
  nlohmann::ordered_json json{{"bytes", row.bytes}, {"count", row.count}};
  json["out_of_place"] = json_of(row.out_of_place);
  if (row.in_place) json["in_place"] = json_of(*row.in_place);
  if (row.mpi) {
    json["mpi"] = json_of(*row.mpi);
    json["ratio"] = row.ratio;
  }
  json["sent_messages"] = row.sent_messages;
  json["sent_bytes"] = row.sent_bytes;
  if (row.bound_seconds > 0) {
    json["bound_us"] = us(row.bound_seconds);
    json["part_of_bound"] = row.bound_seconds / row.out_of_place.spread.median;
  }
  return json;
}

std::string nccl_line(const Options& options, const Row& row) {
  const auto columns = [&](const Timing& timing) {
    return fmt::format("{:>11.2f} {:>7.2f} {:>7.2f} {:>6}", us(timing.spread.median), timing.algbw / 1e9,
                       timing.busbw / 1e9, wrong_text(timing));
  };
  std::string text = fmt::format("{:>12} {:>12} {:>6} {:>8} {:>5}", row.bytes, row.count,
                                 name_of(options.type), name_of(options.op), options.root) +
                     columns(row.out_of_place);
  if (row.in_place) text += columns(*row.in_place);
  if (row.mpi) text += columns(*row.mpi) + fmt::format(" {:>7.2f}", row.ratio);
  if (row.bound_seconds > 0)
    text += fmt::format(" {:>10.2f} {:>6.1f}", us(row.bound_seconds),
                        100 * row.bound_seconds / row.out_of_place.spread.median);
  return text +
         fmt::format("   {:.2f}..{:.2f}\n", us(row.out_of_place.spread.p1), us(row.out_of_place.spread.p99));
}

std::string nccl_header(const Options& options, Rank ranks, const std::string& mpi) {
  const bool second = !options.versus && options.in_place;
  std::string text =
      fmt::format("# tutti bench: {} on {} ranks, {} buffers, {}{}\n", schedule::name_of(options.collective),
                  ranks, options.memory == Memory::arena ? "arena" : "user",
                  options.mode == Mode::batch ? "back to back" : "fresh inputs",
                  options.link.empty() ? "" : ", each behind a link of " + options.link);
  text += fmt::format("# MPI: {}\n", mpi);
  text += fmt::format("#{:>11} {:>12} {:>6} {:>8} {:>5}{:^34}{}{}\n", "", "", "", "", "", "out-of-place",
                      second ? fmt::format("{:^34}", "in-place") : "",
                      options.versus ? fmt::format("{:^34}", "MPI") : "");
  const std::string columns = fmt::format("{:>11} {:>7} {:>7} {:>6}", "time", "algbw", "busbw", "#wrong");
  text += fmt::format("#{:>11} {:>12} {:>6} {:>8} {:>5}{}{}{}{}   p1..p99\n", "size", "count", "type",
                      "redop", "root", columns, second || options.versus ? columns : "",
                      options.versus ? fmt::format(" {:>7}", "ratio") : "",
                      options.bound ? fmt::format(" {:>10} {:>6}", "bound", "% of") : "");
  text += fmt::format("#{:>11} {:>12} {:>6} {:>8} {:>5}{:>11} {:>7} {:>7}\n", "(B)", "(elements)", "", "", "",
                      "(us)", "(GB/s)", "(GB/s)");
  return text;
}

}  // namespace

Format format_from(std::string_view name) {
  if (name == "nccl") return Format::nccl;
  if (name == "osu") return Format::osu;
  if (name == "csv") return Format::csv;
  if (name == "json") return Format::json;
  base::fail<InvalidArgument>("unknown format '{}'; known are nccl, osu, csv, json", name);
}

std::size_t wrong(const std::vector<Row>& rows) {
  std::size_t sum = 0;
  for (const Row& row : rows) {
    sum += row.out_of_place.wrong + (row.in_place ? row.in_place->wrong : 0) + (row.mpi ? row.mpi->wrong : 0);
  }
  return sum;
}

std::size_t noisy(const std::vector<Row>& rows) {
  return static_cast<std::size_t>(std::ranges::count_if(rows, [](const Row& row) {
    return row.out_of_place.spread.width() > too_wide || (row.mpi && row.mpi->spread.width() > too_wide);
  }));
}

std::string header(Format format, const Options& options, Rank ranks, const std::string& mpi) {
  switch (format) {
    case Format::nccl: return nccl_header(options, ranks, mpi);
    case Format::osu:
      return fmt::format("# tutti {} latency, {} ranks\n# {:<10}{:>20}{:>20}{:>20}{:>12}\n",
                         schedule::name_of(options.collective), ranks, "Size", "Median Latency(us)",
                         "p1 Latency(us)", "p99 Latency(us)", "Iterations");
    case Format::csv:
      return "bytes,count,type,op,median_us,p1_us,p99_us,algbw_GBps,busbw_GBps,wrong,in_place_us,mpi_us,"
             "ratio,bound_us\n";
    case Format::json: break;
  }
  return {};
}

std::string line(Format format, const Options& options, const Row& row) {
  const Timing& ours = row.out_of_place;
  switch (format) {
    case Format::nccl: return nccl_line(options, row);
    case Format::osu:
      return fmt::format("{:<12}{:>20.2f}{:>20.2f}{:>20.2f}{:>12}\n", row.bytes, us(ours.spread.median),
                         us(ours.spread.p1), us(ours.spread.p99), row.iterations);
    case Format::csv: {
      const auto optional = [](bool there, double value) {
        return there ? fmt::format("{:.3f}", value) : "";
      };
      return fmt::format(
          "{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{},{},{},{},{}\n", row.bytes, row.count,
          name_of(options.type), name_of(options.op), us(ours.spread.median), us(ours.spread.p1),
          us(ours.spread.p99), ours.algbw / 1e9, ours.busbw / 1e9, wrong_text(ours),
          optional(row.in_place.has_value(), row.in_place ? us(row.in_place->spread.median) : 0),
          optional(row.mpi.has_value(), row.mpi ? us(row.mpi->spread.median) : 0),
          optional(row.mpi.has_value(), row.ratio), optional(row.bound_seconds > 0, us(row.bound_seconds)));
    }
    case Format::json: break;
  }
  return {};
}

std::string footer(Format format, const Options& options, const std::vector<Row>& rows, Rank ranks,
                   const std::string& mpi) {
  if (format == Format::csv) return {};
  const std::size_t unclear = noisy(rows);
  if (format == Format::json) {
    nlohmann::ordered_json json{{"collective", schedule::name_of(options.collective)},
                                {"ranks", ranks},
                                {"type", name_of(options.type)},
                                {"op", name_of(options.op)},
                                {"mode", options.mode == Mode::batch ? "batch" : "fresh"},
                                {"buffer", options.memory == Memory::arena ? "arena" : "user"},
                                {"mpi_library", mpi}};
    if (!options.link.empty()) json["link"] = options.link;
    json["rows"] = nlohmann::ordered_json::array();
    for (const Row& row : rows) json["rows"].push_back(json_of(row));
    json["wrong"] = wrong(rows);
    if (options.versus) {
      json["geomean_ratio"] = mean_ratio(rows);
      json["worst_ratio"] = worst_ratio(rows);
    }
    json["noisy_rows"] = unclear;
    return json.dump(2) + "\n";
  }
  double busbw = 0;
  for (const Row& row : rows) busbw += row.out_of_place.busbw / 1e9 / static_cast<double>(rows.size());
  std::string text = options.check ? fmt::format("# Out of bounds values : {} {}\n", wrong(rows),
                                                 wrong(rows) == 0 ? "OK" : "FAILED")
                                   : "";
  text += fmt::format("# Avg bus bandwidth    : {:.4f}\n", busbw);
  if (options.versus)
    text += fmt::format("# MPI's time / ours    : geometric mean {:.2f}, worst size {:.2f}\n",
                        mean_ratio(rows), worst_ratio(rows));
  if (unclear > 0)
    text += fmt::format(
        "# noisy: in {} of {} rows half of the samples differ by more than {:.0f} % of the median; "
        "their figures say little\n",
        unclear, rows.size(), 100 * too_wide);
  return text;
}

}  // namespace tutti::bench
