#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <memory>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "bench/plan.hpp"
#include "schedule/explain.hpp"
#include "tools/command.hpp"
#include "tools/parse.hpp"
#include "tutti/session.hpp"

namespace tutti::tools {
namespace {

struct Options {
  std::string bytes;
  std::string type = "f32";
  std::string op = "sum";
  std::string order;
  std::string wire;
  Rank ranks = 4;
  std::string collective = "allreduce";
  std::string algorithm;
  Rank root = 0;
  std::uint32_t radix = 0;
  Rank rank = -1;
  std::string svg;
};

/// What a call would do on the ranks that this was started with.
int run_plan(const Options& options) {
  bench::PlanOptions plan{.collective = parse_collective(options.collective),
                          .bytes = base::parse_bytes(options.bytes, "--bytes"),
                          .type = dtype_from(options.type),
                          .op = op_from(options.op),
                          .root = options.root,
                          .algorithm = options.algorithm};
  if (!options.order.empty()) plan.order = options.order == "any" ? Order::any : Order::canonical;
  if (!options.wire.empty()) plan.wire_bytes_per_second = base::parse_rate(options.wire, "--wire");
  Session session;
  const base::SteadyClock clock;
  const std::string text = bench::explain_plan(session.world(), clock, plan);
  if (session.world().rank() == 0) fmt::print("{}", text);
  return 0;
}

int run(const Options& options) {
  if (!options.bytes.empty()) return run_plan(options);
  base::require(!options.algorithm.empty(),
                "say which: --algorithm NAME for its schedule, or --bytes SIZE for what a call does here");
  const auto& algorithm =
      schedule::require_algorithm(parse_collective(options.collective), options.algorithm);
  const std::uint32_t radix = options.radix == 0 ? algorithm.radices.front() : options.radix;
  const schedule::Generated schedule(algorithm, options.ranks, options.root, radix);
  base::require(options.rank < options.ranks, "--rank {}: there are {} ranks", options.rank, options.ranks);
  const std::string title =
      fmt::format("{} {}, {} ranks", name_of(algorithm.collective), algorithm.name, options.ranks);
  fmt::print("{}, {} blocks\nsource: {}\n\n", title, schedule.blocks(), algorithm.source);
  fmt::print("{}\n", explain(schedule, options.rank < 0 ? std::nullopt : std::optional(options.rank)));
  fmt::print(
      ">1[0] sends block 0 to rank 1; <1[0] receives it; +1[0] adds it; ~1[0] keeps it in a slot; =[0] adds "
      "all slots\n");
  fmt::print("{}", summary_of(schedule));
  if (options.svg.empty()) return 0;
  std::ofstream file(options.svg);
  file << draw_svg(schedule, title);
  file.close();
  if (!file) base::fail<SystemError>("--svg: cannot write '{}': {}", options.svg, base::errno_text(errno));
  fmt::print("drawing: {}\n", options.svg);
  return 0;
}

}  // namespace

std::function<int()> attach_explain(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("--ranks", options->ranks, "Rank count")
      ->envname("TUTTI_RANKS")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--algorithm", options->algorithm, "Algorithm, as `tutti verify` lists them")
      ->envname("TUTTI_EXPLAIN_ALGORITHM");
  app.add_option("--bytes", options->bytes,
                 "Under mpirun: how a call with a message of this size runs here, why, and how well")
      ->envname("TUTTI_BYTES");
  app.add_option("--type", options->type, "Its element type")->capture_default_str();
  app.add_option("--op", options->op, "Its reduction")->capture_default_str();
  app.add_option("--order", options->order, "Its order of additions")
      ->check(CLI::IsMember({"canonical", "any"}));
  app.add_option("--wire", options->wire,
                 "Rate of a node's link, such as 1gbit, for the bound [as tuned, or as measured]");
  app.add_option("--collective", options->collective, "Collective")
      ->envname("TUTTI_COLLECTIVE")
      ->capture_default_str();
  app.add_option("--root", options->root, "Root of broadcast and reduce")
      ->envname("TUTTI_ROOT")
      ->capture_default_str();
  app.add_option("--radix", options->radix,
                 "Radix of the tree, where there is one; 0: the first that is proved")
      ->envname("TUTTI_RADIX")
      ->capture_default_str();
  app.add_option("--rank", options->rank, "Only this rank's column")->envname("TUTTI_RANK");
  app.add_option("--svg", options->svg, "Also write a drawing to this file")->envname("TUTTI_SVG");
  return [options] { return run(*options); };
}

}  // namespace tutti::tools
