#include "base/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "base/error.hpp"

namespace tutti::base {
namespace {

template <class T>
std::optional<T> number_in(const char* name) {
  const auto text = environment(name);
  if (!text || text->empty()) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

double seconds_from(const std::string& text, std::string_view name) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value >= 0 && value < 1e9,
          "{}='{}': expected seconds, 0 (no limit) or more", name, text);
  return value;
}

}  // namespace

std::optional<std::string> environment(const char* name) {
  const char* value =
      std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing in tutti writes the environment
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> environment_with_prefix(std::string_view prefix) {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with(prefix)) names.emplace_back(text.substr(0, text.find('=')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

LaunchHint launch_hint() {
  if (const auto size = number_in<Rank>("OMPI_COMM_WORLD_SIZE"))
    return {"Open MPI", number_in<Rank>("OMPI_COMM_WORLD_RANK"), size};
  if (const auto size = number_in<Rank>("PMI_SIZE"))
    return {"MPICH or Intel MPI (PMI)", number_in<Rank>("PMI_RANK"), size};
  if (const auto size = number_in<Rank>("SLURM_STEP_NUM_TASKS")) {
    if (environment("SLURM_PROCID")) return {"Slurm", number_in<Rank>("SLURM_PROCID"), size};
  }
  return {};
}

void require_same_size(const LaunchHint& hint, Rank mpi_size, std::string_view mpi_library) {
  // sbatch itself sets Slurm's variables for the batch script, where one process is right.
  if (!hint.size || *hint.size == mpi_size || (hint.launcher == "Slurm" && *hint.size == 1)) return;
  fail<AgreedError>(
      "the launcher ({}) started {} processes, but MPI says that there {} {}: the launcher belongs to "
      "another MPI library.\n"
      "  this program uses: {}\n"
      "  start it with the mpirun of that library (Debian: mpirun.openmpi or mpirun.mpich; Slurm: srun "
      "--mpi=pmix or --mpi=pmi2)",
      hint.launcher, *hint.size, mpi_size == 1 ? "is" : "are", mpi_size, mpi_library);
}

std::uint64_t parse_bytes(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  int shift = -1;
  if (unit.empty() || unit == "B" || unit == "b") {
    shift = 0;
  } else {
    constexpr std::string_view letters = "kKmMgGtT";
    const auto at = letters.find(unit.front());
    const std::string_view rest = unit.substr(1);
    if (at != std::string_view::npos &&
        (rest.empty() || rest == "B" || rest == "b" || rest == "iB" || rest == "i")) {
      shift = 10 * (static_cast<int>(at) / 2 + 1);
    }
  }
  require(error == std::errc() && shift >= 0 && value <= (~std::uint64_t{0} >> shift),
          "{}='{}': expected a number of bytes such as 65536, 64K, 4M or 1GiB", what, text);
  return value << shift;
}

double parse_rate(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(text.substr(static_cast<std::size_t>(end - text.data())));
  std::ranges::transform(unit, unit.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (unit.ends_with("/s")) unit.resize(unit.size() - 2);
  double bits = 0;
  if (unit == "kbit") bits = 1e3;
  if (unit == "mbit") bits = 1e6;
  if (unit == "gbit") bits = 1e9;
  require(error == std::errc() && bits > 0 && value > 0 && value < 1e6,
          "{}='{}': expected a rate such as 100mbit, 1gbit or 2.5gbit", what, text);
  return value * bits / 8;
}

CoreOptions CoreOptions::from_environment() {
  CoreOptions options;
  if (const auto order = environment("TUTTI_ORDER"); order && !order->empty()) {
    require(*order == "any" || *order == "canonical", "TUTTI_ORDER='{}': expected canonical or any", *order);
    options.any_order = *order == "any";
  }
  if (const auto text = environment("TUTTI_ALGORITHM")) options.algorithm = *text;
  if (const auto text = environment("TUTTI_LINK"); text && !text->empty())
    options.link = parse_link(*text, "TUTTI_LINK");
  if (const auto text = environment("TUTTI_SEGMENT_BYTES"); text && !text->empty()) {
    options.segment_bytes = parse_bytes(*text, "TUTTI_SEGMENT_BYTES");
  }
  if (const auto text = environment("TUTTI_MESSAGE_BYTES"); text && !text->empty()) {
    options.message_bytes = parse_bytes(*text, "TUTTI_MESSAGE_BYTES");
    require(options.message_bytes > 0 && options.message_bytes <= 1 << 30,
            "TUTTI_MESSAGE_BYTES='{}': expected 1 to 1G", *text);
  }
  if (const auto text = environment("TUTTI_SEGMENTS_IN_FLIGHT"); text && !text->empty()) {
    const auto value = number_in<std::uint32_t>("TUTTI_SEGMENTS_IN_FLIGHT");
    require(value && *value <= 64, "TUTTI_SEGMENTS_IN_FLIGHT='{}': expected 1 to 64, or 0 to choose", *text);
    options.segments_in_flight = *value;
  }
  if (const auto text = environment("TUTTI_TIMEOUT"); text && !text->empty()) {
    options.timeout = Seconds(seconds_from(*text, "TUTTI_TIMEOUT"));
  }
  if (const auto text = environment("TUTTI_SHARED_MEMORY"); text && !text->empty()) {
    require(*text == "on" || *text == "off", "TUTTI_SHARED_MEMORY='{}': expected on or off", *text);
    options.shared_memory = *text == "on";
  }
  if (const auto text = environment("TUTTI_SHARED_CELL"); text && !text->empty()) {
    options.shared_cell = parse_bytes(*text, "TUTTI_SHARED_CELL");
    require(options.shared_cell >= 4096 && options.shared_cell <= 64 << 20,
            "TUTTI_SHARED_CELL='{}': expected 4K to 64M", *text);
  }
  if (const auto text = environment("TUTTI_SHARED_LIMIT"); text && !text->empty())
    options.shared_limit = parse_bytes(*text, "TUTTI_SHARED_LIMIT");
  if (const auto text = environment("TUTTI_PROFILE")) options.profile = *text;
  if (const auto cache = environment("XDG_CACHE_HOME"); cache && !cache->empty())
    options.cache_folder = *cache + "/tutti";
  else if (const auto home = environment("HOME"); home && !home->empty())
    options.cache_folder = *home + "/.cache/tutti";
  if (const auto text = environment("TUTTI_LOG"); text && !text->empty()) {
    require(*text == "error" || *text == "warning" || *text == "info" || *text == "debug",
            "TUTTI_LOG='{}': expected error, warning, info or debug", *text);
    options.log_level = *text;
  }
  return options;
}

}  // namespace tutti::base
