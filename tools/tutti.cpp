#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "base/error.hpp"
#include "base/options.hpp"
#include "tools/command.hpp"
#include "tutti/version.hpp"

namespace tutti::tools {
namespace {

constexpr std::array table{
    Command{"train", "Train a model with data-parallel SGD on every rank that mpirun starts", attach_train},
    Command{"bench", "Measure collectives, and compare them with the MPI library's own", attach_bench},
    Command{"tune", "Find out what is fastest on this machine, for later sessions to use", attach_tune},
    Command{"info", "Show what this build has and what this machine has", attach_info},
    Command{"verify", "Prove every collective algorithm for every rank count", attach_verify},
    Command{"explain", "Show how a call runs here, or an algorithm's schedule step by step or as a drawing",
            attach_explain},
};

}  // namespace

std::span<const Command> commands() {
  return table;
}

}  // namespace tutti::tools

namespace {

/// Launchers end the job when the first rank fails: the one that says why must come first.
int fail_after_speaker(int status) {
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return status;
}

}  // namespace

int main(int argc, char* argv[]) {
  using tutti::tools::commands;
  CLI::App app("tutti: decentralized data-parallel SGD over MPI", "tutti");
  app.set_version_flag("--version", fmt::format("tutti {}", tutti::version));
  app.require_subcommand(1);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "Read options from this file (INI or TOML; a section for each subcommand)")
      ->envname("TUTTI_CONFIG");
  app.footer("Launch training with mpirun: mpirun -n 4 tutti train");
  std::function<int()> run;
  for (const auto& command : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->fallthrough();  // --config may stand behind the subcommand too
    const std::function<int()> action = command.attach(*sub);
    sub->callback([&run, action] { run = action; });
  }
  const auto is_first_word = [&](const auto& command) { return argc > 1 && command.name == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands(), is_first_word)) {
    fmt::print(stderr, "tutti: error: unknown command '{}'; tutti --help lists them\n", argv[1]);
    return 2;
  }
  // Before MPI is up only the launcher knows the rank; a usage error is printed once, by rank 0, and ends
  // every rank.
  const bool speaks = tutti::base::launch_hint().rank.value_or(0) == 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (speaks) return app.exit(error) == 0 ? 0 : 2;
    return error.get_exit_code() == 0 ? 0 : fail_after_speaker(2);
  }
  try {
    return run();
  } catch (const tutti::InvalidArgument& error) {
    // Agreed on by all ranks, or found by each of them before they talk to each other.
    if (!speaks) return fail_after_speaker(1);
    fmt::print(stderr, "tutti: error: {}\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: error: {}\n", error.what());
    return 1;
  }
}
