#include "bench/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "bench/bound.hpp"
#include "bench/measure.hpp"
#include "engine/communicator_state.hpp"

namespace tutti::bench {

using engine::Choice;
using engine::CommunicatorState;
using engine::Path;
using engine::Request;
using schedule::Collective;

namespace {

constexpr std::size_t shown_alternatives = 8;

std::string time_of(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  return seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

Request request_of(Communicator& world, const PlanOptions& options, std::size_t& elements) {
  elements = options.bytes / size_of(options.type);
  const bool by_rank =
      options.collective == Collective::reduce_scatter || options.collective == Collective::allgather;
  const auto p = static_cast<std::size_t>(world.size());
  CallOptions call{.order = options.order, .algorithm = options.algorithm};
  Request request{.collective = options.collective,
                  .count = by_rank ? elements / p : elements,
                  .type = options.type,
                  .op = options.op,
                  .root = options.root};
  return world.state().prepare(request, call);
}

std::string reason_of(CommunicatorState& state, const Request& request,
                      const CommunicatorState::Route& route) {
  if (!request.algorithm.empty()) return "it was named";
  if (route.rule != nullptr)
    return fmt::format("a rule of profile '{}' for {} to {} bytes", state.runtime().profile->path,
                       route.rule->from, route.rule->to);
  switch (route.choice.path) {
    case Path::node: return "all ranks share memory";
    case Path::hierarchy: return "ranks of a node share memory";
    default: break;
  }
  return "the cheapest by the cost model of those in the allowed order";
}

/// How a schedule is cut up and sent.
std::string shape_of(engine::ScheduleEngine& engine, const Request& request, const Choice& choice, Rank ranks,
                     Rank rank) {
  const schedule::Generated schedule(*choice.algorithm, ranks, request.root, choice.radix);
  const std::uint64_t segment = engine.segment_for(schedule, choice, request);
  const std::uint64_t bytes = engine::message_bytes(request, ranks);
  std::uint64_t rounds = 0;
  for (std::uint32_t strand = 0; strand < schedule.strands(); ++strand)
    rounds = std::max<std::uint64_t>(rounds, schedule.rounds(rank, strand));
  return fmt::format("{} rounds in {} strand{}, {} blocks; {} segment{} of up to {} bytes, {} in flight",
                     rounds, schedule.strands(), schedule.strands() == 1 ? "" : "s", schedule.blocks(),
                     std::max<std::uint64_t>(1, (bytes + segment - 1) / segment), bytes <= segment ? "" : "s",
                     segment, engine.in_flight(choice));
}

/// What the route runs as a schedule: itself, or on this rank's rail. Nothing where there is none.
std::string schedule_line(CommunicatorState& state, const Request& request, Choice choice) {
  CommunicatorState* runs = &state;
  Request part = request;
  if (choice.path == Path::hierarchy) {
    runs = state.rail();
    part.algorithm = {};
    part.count /= static_cast<std::size_t>(state.hierarchy()->slices());
    choice = {.path = Path::schedule};
  }
  if (choice.path != Path::schedule) return {};
  if (choice.algorithm == nullptr) choice = runs->engine().choose(part).choice;
  return fmt::format("schedule   {}{}: {}\n", text_of(choice),
                     runs == &state ? "" : fmt::format(" on each rail of {} ranks", runs->size()),
                     shape_of(runs->engine(), part, choice, runs->size(), runs->rank()));
}

std::string alternatives(CommunicatorState& state, const Request& request) {
  Request free = request;
  free.algorithm = {};
  std::vector<std::pair<double, std::string>> all;
  for (const Path path : {Path::node, Path::hierarchy, Path::library}) {
    const Choice choice{.path = path};
    if (state.refusal(free, choice).empty()) all.emplace_back(state.predict(free, choice), text_of(choice));
  }
  for (const auto& priced : state.engine().candidates(free))
    all.emplace_back(priced.seconds, text_of(priced.choice));
  std::ranges::stable_sort(all, {}, &std::pair<double, std::string>::first);
  std::string text = "predicted  ";
  for (std::size_t i = 0; i < std::min(all.size(), shown_alternatives); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", all[i].second, time_of(all[i].first));
  return text + "\n";
}

struct PhysicalBound {
  double seconds = 0;
  std::string what;
};

PhysicalBound bound_of(Communicator& world, const base::Clock& clock, const PlanOptions& options) {
  CommunicatorState& state = world.state();
  const auto bytes = static_cast<double>(options.bytes);
  if (state.node() != nullptr) {
    if (options.collective != Collective::allreduce) return {0, "none is known for this collective"};
    return {Bound(world, clock, options.bytes).seconds(options.bytes, 15),
            "memory: copying the message, and exchanging slices with the peers, as measured now"};
  }
  const WireRate rate = wire_rate(world, options.wire_bytes_per_second);
  if (rate.seconds_per_byte == 0) return {0, "no rate is known: give --wire"};
  const double factor = bus_factor(options.collective, static_cast<Rank>(state.nodes()));
  return {factor * bytes * rate.seconds_per_byte,
          fmt::format("wire: {:.3g} of the message through the link of each of {} nodes, at {}", factor,
                      state.nodes(), rate.source)};
}

Row measured(Communicator& world, const base::Clock& clock, const PlanOptions& options) {
  Options bench{.collective = options.collective,
                .begin = options.bytes,
                .end = options.bytes,
                .type = options.type,
                .op = options.op,
                .root = options.root,
                .in_place = false,
                .algorithm = options.algorithm};
  if (options.order) bench.order = *options.order == Order::any ? "any" : "canonical";
  return measure(world, nullptr, clock, bench, [](const Row&) {}).front();
}

}  // namespace

std::string explain_plan(Communicator& world, const base::Clock& clock, const PlanOptions& options) {
  CommunicatorState& state = world.state();
  std::size_t elements = 0;
  const Request request = request_of(world, options, elements);
  auto route = state.route(request);
  if (route.choice.path == Path::schedule && route.choice.algorithm == nullptr)
    route.choice = state.engine().choose(request).choice;
  const Row row = measured(world, clock, options);
  const PhysicalBound bound = bound_of(world, clock, options);
  const double predicted = state.predict(request, route.choice);
  const double median = row.out_of_place.spread.median;
  std::string text = fmt::format(
      "{} {}of {} {} ({} bytes) on {} ranks, {} order\n", schedule::name_of(options.collective),
      schedule::adds(options.collective) ? fmt::format("{} ", name_of(options.op)) : "", elements,
      name_of(options.type), options.bytes, world.size(), request.any_order ? "any" : "canonical");
  text += fmt::format("layout     {}\n", state.paths());
  text += fmt::format("way        {}: {}\n", text_of(route.choice), reason_of(state, request, route));
  text += schedule_line(state, request, route.choice);
  text += alternatives(state, request);
  text +=
      fmt::format("this call  predicted {}, measured {} (p1 {}, p99 {})\n", time_of(predicted),
                  time_of(median), time_of(row.out_of_place.spread.p1), time_of(row.out_of_place.spread.p99));
  text +=
      fmt::format("messages   {} of {} bytes in all, over all ranks\n", row.sent_messages, row.sent_bytes);
  text += bound.seconds > 0 ? fmt::format("bound      {}, {:.2f} times that: {}\n", time_of(bound.seconds),
                                          median / bound.seconds, bound.what)
                            : fmt::format("bound      {}\n", bound.what);
  return text;
}

}  // namespace tutti::bench
