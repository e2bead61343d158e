#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/wait.hpp"
#include "schedule/verify.hpp"
#include "tools/command.hpp"
#include "tools/parse.hpp"

namespace tutti::tools {
namespace {

struct Options {
  std::string ranks = "1..128";
  std::string collective;
  std::string algorithm;
  unsigned threads = base::usable_processors();
};

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int run(const Options& options) {
  schedule::Sweep sweep{.algorithm = options.algorithm, .threads = options.threads};
  std::tie(sweep.first, sweep.last) = parse_range(options.ranks, "--ranks");
  if (!options.collective.empty()) sweep.collective = parse_collective(options.collective);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) {
    sweep.progress = [](std::size_t done, std::size_t all) {
      fmt::print(stderr, "\r{} of {} proved", done, all);
    };
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto proofs = schedule::verify(sweep);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (terminal) fmt::print(stderr, "\r{:40}\r", "");
  fmt::print("{}", table_of(proofs, sweep));
  std::uint64_t steps = 0;
  int failed = 0;
  for (const auto& proof : proofs) {
    steps += proof.steps;
    if (proof.correct == proof.shapes) continue;
    ++failed;
    fmt::print("\nNOT CORRECT: {} {}: {}\n", name_of(proof.algorithm->collective), proof.algorithm->name,
               proof.first_defect);
  }
  fmt::print("\n{} algorithms, {} steps in {:.1f} s on {} threads, peak memory {:.0f} MiB: {}\n",
             proofs.size(), steps, seconds, options.threads, peak_megabytes(),
             failed == 0 ? "all proved" : fmt::format("{} FAILED", failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace

std::function<int()> attach_verify(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("--ranks", options->ranks, "Rank counts, as N or FIRST..LAST")
      ->envname("TUTTI_RANKS")
      ->capture_default_str();
  app.add_option("--collective", options->collective, "Only this collective")->envname("TUTTI_COLLECTIVE");
  app.add_option("--algorithm", options->algorithm, "Only this algorithm")->envname("TUTTI_VERIFY_ALGORITHM");
  app.add_option("--threads", options->threads, "Threads to prove on")
      ->envname("TUTTI_THREADS")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace tutti::tools
