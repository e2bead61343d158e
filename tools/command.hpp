#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string_view>

namespace tutti::tools {

/// One subcommand of `tutti`. attach() adds its options to `app` and returns what to run once they are
/// parsed; the result is the process's exit status. Subcommands that talk to other ranks make their own
/// Session.
struct Command {
  std::string_view name;
  std::string_view summary;
  std::function<int()> (*attach)(CLI::App& app);
};

/// Every subcommand, in the order of `tutti --help`.
std::span<const Command> commands();

std::function<int()> attach_train(CLI::App& app);
std::function<int()> attach_bench(CLI::App& app);
std::function<int()> attach_tune(CLI::App& app);
std::function<int()> attach_info(CLI::App& app);
std::function<int()> attach_verify(CLI::App& app);
std::function<int()> attach_explain(CLI::App& app);

}  // namespace tutti::tools
