// All text that a user sees, against committed baselines.
#include <CLI/Version.hpp>
#include <array>
#include <cstdio>
#include <regex>
#include <string>

#include "schedule/explain.hpp"
#include "schedule/verify.hpp"
#include "support/approval.hpp"
#include "support/catch.hpp"
#include "train/reporter.hpp"

using namespace tutti;

namespace {

/// What the program prints, on both streams.
std::string output_of(const std::string& arguments) {
  FILE* pipe = popen((std::string(TUTTI_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> chunk{};
  for (std::size_t n; (n = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) text.append(chunk.data(), n);
  pclose(pipe);
  return text;
}

void check(const std::string& name, const std::string& text) {
  const std::string difference = approve(name, text);
  INFO(difference);
  CHECK(difference.empty());
}

}  // namespace

// The wording of CLI11's own messages changes with its version; the baselines are of 2.1.
constexpr bool same_wording = CLI11_VERSION_MAJOR == 2 && CLI11_VERSION_MINOR == 1;

TEST_CASE("help") {
  if (!same_wording) return;
  check("help.txt", output_of("--help"));
  for (const std::string command : {"train", "bench", "tune", "info", "verify", "explain"})
    check("help-" + command + ".txt", output_of(command + " --help"));
}

TEST_CASE("info has these lines, whatever the machine") {
  const std::string text = output_of("info");
  // The left column only: the rest is the machine's.
  check("info.txt", std::regex_replace(text, std::regex("^(.{20}).*", std::regex::multiline), "$1"));
}

TEST_CASE("explain, verify and the drawing") {
  for (const std::string algorithm : {"ring", "direct", "double_tree", "halving_doubling"}) {
    check("explain-" + algorithm + ".txt", output_of("explain --ranks 5 --algorithm " + algorithm));
  }
  check("explain-bruck.txt",
        output_of("explain --collective allgather --ranks 5 --algorithm bruck --rank 2"));
  // Times and memory are the machine's.
  check("verify.txt", std::regex_replace(output_of("verify --ranks 1..9 --threads 1"),
                                         std::regex(R"((\d+\.\d+|\d+ MiB))"), "_"));
  const schedule::Generated ring(*schedule::find(schedule::Collective::allreduce, "ring"), 3);
  check("ring.svg", draw_svg(ring, "allreduce ring, 3 ranks"));
}

TEST_CASE("usage errors") {
  if (!same_wording) return;
  std::string text;
  for (const std::string arguments :
       {"", "train --epochs many", "train --epochz 3", "train --optimizer lion", "explain"}) {
    text += "$ tutti " + arguments + "\n" + output_of(arguments) + "\n";
  }
  check("usage.txt", text);
}

TEST_CASE("errors") {
  std::string text;
  for (const std::string arguments :
       {"trian", "train --data nothing", "train --model 12,x", "train --resume nothing",
        "train --link 1gbit,soon", "bench --link fast", "explain --algorithm nothing", "verify --ranks 5..2",
        "verify --ranks few", "verify --algorithm nothing", "verify --collective nothing"}) {
    text += "$ tutti " + arguments + "\n" + output_of(arguments) + "\n";
  }
  check("errors.txt", text);
}

TEST_CASE("the summary of a run") {
  train::Summary summary{
      .steps = 690, .ranks = 4, .parameters = 9610, .seconds = 1.25, .replica_hash = 0x0123456789abcdef};
  summary.last = {.epoch = 30,
                  .step = 690,
                  .train_loss = 0.0123,
                  .test_accuracy = 0.9806,
                  .step_seconds = 4.5e-4,
                  .communication = 0.42};
  summary.checkpoint = "tutti-run/checkpoint.tutti";
  summary.metrics = "tutti-run/metrics.jsonl";
  check("summary.txt", table_of(summary));
}
