#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "bench/measure.hpp"
#include "bench/report.hpp"
#include "tools/command.hpp"
#include "tools/parse.hpp"
#include "transport/mpi_native.hpp"
#include "tutti/session.hpp"

namespace tutti::tools {
namespace {

/// As on the command line; names and sizes become what they mean when the ranks can agree on errors.
struct Text {
  std::string collective = "allreduce";
  std::string begin = "4";
  std::string end = "64M";
  std::string op = "sum";
  std::string type = "f32";
  std::string format = "nccl";
  std::string versus;
  std::string mode = "fresh";
  std::string buffer = "user";
  std::string link;
  std::string wire;
};

schedule::Collective collective_from(std::string_view name) {
  for (const auto& algorithm : schedule::algorithms()) {
    if (schedule::name_of(algorithm.collective) == name) return algorithm.collective;
  }
  base::fail<InvalidArgument>(
      "unknown collective '{}'; known are allreduce, reduce_scatter, allgather, broadcast, reduce", name);
}

int run(bench::Options options, const Text& text) {
  options.collective = collective_from(text.collective);
  options.begin = base::parse_bytes(text.begin, "--minbytes");
  options.end = base::parse_bytes(text.end, "--maxbytes");
  options.op = op_from(text.op);
  options.type = dtype_from(text.type);
  options.versus = text.versus == "mpi";
  options.mode = text.mode == "batch" ? bench::Mode::batch : bench::Mode::fresh;
  options.memory = text.buffer == "arena" ? bench::Memory::arena : bench::Memory::user;
  const bench::Format format = bench::format_from(text.format);
  options.link = text.link;
  if (!text.link.empty()) {
    base::parse_link(text.link, "--link");
    base::require(!options.versus,
                  "--versus mpi with --link: the MPI library's own calls would go round the link");
  }
  if (!text.wire.empty()) options.wire_bytes_per_second = base::parse_rate(text.wire, "--wire");
  Session session({.link = text.link});
  Communicator& world = session.world();
  const auto native = options.versus ? transport::make_native_collectives() : nullptr;
  const base::SteadyClock clock;
  const bool speaks = world.rank() == 0;
  const std::string& mpi = session.info().mpi_library;
  const auto print = [&](const std::string& part) {
    if (!speaks) return;
    fmt::print("{}", part);
    std::fflush(stdout);
  };
  print(bench::header(format, options, world.size(), mpi));
  const auto rows = bench::measure(world, native.get(), clock, options,
                                   [&](const bench::Row& row) { print(bench::line(format, options, row)); });
  print(bench::footer(format, options, rows, world.size(), mpi));
  return bench::wrong(rows) == 0 ? 0 : 1;
}

}  // namespace

std::function<int()> attach_bench(CLI::App& app) {
  const auto o = std::make_shared<bench::Options>();
  const auto text = std::make_shared<Text>();
  app.add_option("--collective", text->collective,
                 "allreduce | reduce_scatter | allgather | broadcast | reduce")
      ->capture_default_str();
  app.add_option("-b,--minbytes", text->begin, "Smallest message, such as 4, 64K or 1M")
      ->capture_default_str();
  app.add_option("-e,--maxbytes", text->end, "Largest message")->capture_default_str();
  app.add_option("-f,--stepfactor", o->factor, "From one size to the next")->capture_default_str();
  app.add_option("-n,--iters", o->iterations, "Samples of a size; 0: 300 for short messages, 9 for long ones")
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", o->warmup, "Samples before those that count")->capture_default_str();
  app.add_option("-o,--op", text->op, "sum | average | min | max | product")->capture_default_str();
  app.add_option("-d,--datatype", text->type, "f32 f64 f16 bf16 i8 u8 i32 u32 i64 u64")
      ->capture_default_str();
  app.add_option("-r,--root", o->root, "Of broadcast and reduce")->capture_default_str();
  app.add_option("-c,--check", o->check, "Compare results with what must come out")->capture_default_str();
  app.add_option("--format", text->format, "nccl | osu | csv | json")->capture_default_str();
  app.add_option("--link", text->link, link_help)->envname("TUTTI_LINK");
  app.add_option("--versus", text->versus,
                 "mpi: the MPI library's own call, in turns with ours in the same run")
      ->check(CLI::IsMember({"mpi"}));
  app.add_option("--mode", text->mode,
                 "fresh: inputs are rewritten before every call; batch: calls back to back")
      ->check(CLI::IsMember({"fresh", "batch"}))
      ->capture_default_str();
  app.add_option("--buffer", text->buffer,
                 "user: private memory; arena: memory that the ranks of a node share")
      ->check(CLI::IsMember({"user", "arena"}))
      ->capture_default_str();
  app.add_flag("--bound", o->bound,
               "Also what the machine allows: memory, measured in the same run, or the wire");
  app.add_option(
      "--wire", text->wire,
      "Rate of a node's link for --bound, such as 1gbit [that of --link, as tuned, or as measured]");
  app.add_option("--algorithm", o->algorithm, "A schedule by its name (see tutti verify), over messages");
  app.add_option("--order", o->order, "canonical | any")->check(CLI::IsMember({"canonical", "any"}));
  app.footer(
      "Columns as in nccl-tests: algbw is the message's bytes by the time, busbw what a link must carry, "
      "#wrong elements that\n"
      "are not what they must be. Times are medians over samples, each of the slowest rank. The exit status "
      "is 1 if any\n"
      "element was wrong.");
  return [o, text] { return run(*o, *text); };
}

}  // namespace tutti::tools
