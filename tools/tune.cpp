#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "bench/tune.hpp"
#include "engine/communicator_state.hpp"
#include "tools/command.hpp"
#include "tools/parse.hpp"
#include "tutti/session.hpp"

namespace tutti::tools {
namespace {

struct Options {
  std::vector<std::string> collectives{"allreduce"};
  std::string begin = "4";
  std::string end = "64M";
  bench::TuneOptions tune;
  std::string output;
};

/// Where the profile goes: as asked for, else where sessions look for it.
std::string target_of(const Options& options, const base::CoreOptions& core, const std::string& machine) {
  if (!options.output.empty()) return options.output;
  if (!core.profile.empty() && core.profile != "off") return core.profile;
  base::require(!core.cache_folder.empty(),
                "neither HOME nor XDG_CACHE_HOME is set: say with --output where the profile shall go");
  return engine::profile_path(core.cache_folder, machine);
}

/// What the file has for other calls and layouts of the same machine stays.
void keep_others(engine::Profile& profile, const std::string& path) {
  std::ifstream file(path);
  if (!file) return;
  std::ostringstream text;
  text << file.rdbuf();
  std::optional<engine::Profile> old;
  try {
    old = engine::Profile::parse(text.str(), path);
  } catch (const InvalidArgument& error) {
    fmt::print(stderr, "tutti tune: {}; it is written anew\n", error.what());
    return;
  }
  if (old->machine != profile.machine) return;
  const std::vector<engine::Rule> fresh = profile.rules;
  for (const engine::Rule& rule : old->rules) {
    const bool replaced = std::ranges::any_of(fresh, [&](const engine::Rule& mine) {
      return mine.collective == rule.collective && mine.ranks == rule.ranks && mine.nodes == rule.nodes;
    });
    if (!replaced) profile.rules.push_back(rule);
  }
  if (!profile.local) profile.local = old->local;
  if (!profile.remote) profile.remote = old->remote;
  if (!profile.memory) profile.memory = old->memory;
}

/// Whole or not at all.
void write_file(const std::string& path, const std::string& text) {
  const std::filesystem::path target(path);
  std::error_code ignored;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), ignored);
  const std::string part = path + ".part";
  std::ofstream file(part);
  file << text;
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0)
    base::fail<SystemError>("profile: cannot write '{}': {}", path, base::errno_text(errno));
}

std::string times(const bench::Race& race, std::size_t which) {
  const bench::Contender& contender = race.contenders[which];
  return fmt::format("{:<26} {:>11.2f}", text_of(contender.choice), contender.median * 1e6);
}

void print_race(const bench::Race& race) {
  std::string mpi = "-";
  for (const bench::Contender& contender : race.contenders) {
    if (contender.choice.path == engine::Path::library)
      mpi = fmt::format("{:.2f}{}", contender.median * 1e6, contender.in_race ? "" : " (dropped out)");
  }
  fmt::print("{:>14} {:>10}  {}  {}  {}\n", schedule::name_of(race.collective), race.bytes,
             times(race, race.winner[0]), times(race, race.winner[1]), mpi);
  std::fflush(stdout);
}

/// Rank 0 alone: an error must not leave the others in a collective.
std::string save(engine::Profile profile, const std::string& path) {
  try {
    keep_others(profile, path);
    write_file(path, profile.to_json());
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

int run(Options options) {
  options.tune.collectives.clear();
  for (const std::string& name : options.collectives)
    options.tune.collectives.push_back(parse_collective(name));
  options.tune.begin = base::parse_bytes(options.begin, "--minbytes");
  options.tune.end = base::parse_bytes(options.end, "--maxbytes");
  Session session({.use_profile = false});
  Communicator& world = session.world();
  const bool speaks = world.rank() == 0;
  base::require(world.size() > 1, "tutti tune needs at least two ranks: start it with mpirun");
  base::require(!world.state().runtime().options.link,
                "tutti tune with TUTTI_LINK: a profile is of the machine as it is; unset it");
  const std::string machine = engine::fingerprint(session.info().mpi_library);
  const std::string path = target_of(options, world.state().runtime().options, machine);
  if (speaks) {
    fmt::print("# {}\n# {} ranks, {}\n", machine, world.size(), world.state().paths());
    fmt::print("#{:>13} {:>10}  {:<26} {:>11}  {:<26} {:>11}  {}\n", "collective", "bytes", "canonical order",
               "(us)", "any order", "(us)", "MPI's own (us)");
  }
  const base::SteadyClock clock;
  const engine::Profile profile =
      bench::tune(world, clock, options.tune, machine, [&](const bench::Race& race) {
        if (speaks) print_race(race);
      });
  std::string problem = speaks ? save(profile, path) : std::string();
  std::uint8_t failed = problem.empty() ? 0 : 1;
  world.broadcast(std::span(&failed, 1), 0);
  if (failed != 0) base::fail<base::AgreedError>("{}", problem.empty() ? "rank 0 could not write" : problem);
  if (speaks) fmt::print("# profile: {} ({} rules)\n", path, profile.rules.size());
  return 0;
}

}  // namespace

std::function<int()> attach_tune(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("--collective", o->collectives,
                 "allreduce | reduce_scatter | allgather | broadcast | reduce, one or more")
      ->capture_default_str();
  app.add_option("-b,--minbytes", o->begin, "Smallest message, such as 4, 64K or 1M")->capture_default_str();
  app.add_option("-e,--maxbytes", o->end, "Largest message")->capture_default_str();
  app.add_option("-f,--stepfactor", o->tune.factor, "From one size to the next")->capture_default_str();
  app.add_option("--seconds", o->tune.seconds, "About how long a finalist may take at a size")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option(
      "--output", o->output,
      "Where the profile goes; else TUTTI_PROFILE, else the cache folder, where sessions look for it");
  app.footer(
      "Races the ways that tutti knows, and the MPI library's own call, on the ranks that it is started "
      "with, "
      "and writes what\n"
      "won to a profile. Later sessions on machines like this one, with as many ranks on as many nodes, "
      "choose "
      "by it. Rules\n"
      "for other layouts stay in the file. MPI's own call is taken where the order of additions may be any, "
      "or does not\n"
      "matter. TUTTI_PROFILE=off: no profile; `tutti explain` under mpirun shows what is chosen, and why.");
  return [o] { return run(*o); };
}

}  // namespace tutti::tools
