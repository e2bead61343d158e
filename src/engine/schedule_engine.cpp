#include "engine/schedule_engine.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "engine/runner.hpp"
#include "kernel/kernel.hpp"
#include "schedule/cost.hpp"

namespace tutti::engine {

using schedule::Algorithm;
using schedule::Collective;

namespace {

/// Above this many ranks an algorithm whose ranks each talk to all others is not even considered unless it is
/// named: its proof alone would cost more than it could win.
constexpr Rank direct_limit = 128;

/// Until a tuning profile says better: a message between processes of one machine, and one core adding.
constexpr schedule::Link default_link{
    .latency_s = 2e-6, .seconds_per_byte = 1.5e-10, .reduce_seconds_per_byte = 5e-11};

/// The same between machines: 10 Gbit/s, and what the network's software takes.
constexpr schedule::Link remote_link{
    .latency_s = 25e-6, .seconds_per_byte = 8e-10, .reduce_seconds_per_byte = 5e-11};

/// Within a node a message has no better size than as long as possible; buffers that are used again like to
/// stay in a cache.
constexpr std::uint64_t local_segment_bytes = 4 << 20;
constexpr std::uint32_t local_segments = 2;
/// Enough that the wire is full while this rank adds; more only fill the queues of sockets.
constexpr std::uint32_t remote_segments = 8;

/// Every order of additions gives the same bits.
bool order_is_free(const Request& request, Rank ranks) {
  if (request.collective == Collective::allgather || request.collective == Collective::broadcast) return true;
  return !is_floating(request.type) || request.op == Op::min || request.op == Op::max || ranks <= 2;
}

}  // namespace

ScheduleEngine::ScheduleEngine(transport::Transport& transport, const base::CoreOptions& options,
                               const CallLog& calls)
    : transport_(transport), options_(options), calls_(calls) {}

bool ScheduleEngine::is_canonical(const Algorithm& algorithm, Rank root, std::uint32_t radix) {
  const auto key = std::pair(&algorithm, std::pair(root, radix));
  const auto known = canonical_.find(key);
  if (known != canonical_.end()) return known->second;
  const schedule::Verdict verdict = schedule::check(algorithm, transport_.size(), root, radix);
  if (!verdict.correct) {
    base::fail<Error>("{} '{}' is not correct for {} ranks: {}", schedule::name_of(algorithm.collective),
                      algorithm.name, transport_.size(), verdict.first_defect);
  }
  return canonical_[key] = verdict.canonical;
}

double ScheduleEngine::seconds(const Algorithm& algorithm, std::uint32_t radix,
                               const Request& request) const {
  const schedule::Generated schedule(algorithm, transport_.size(), request.root, radix);
  const bool by_rank =
      request.collective == Collective::reduce_scatter || request.collective == Collective::allgather;
  const std::size_t elements = by_rank && request.counts.empty()
                                   ? request.count * static_cast<std::size_t>(transport_.size())
                                   : request.count;
  // The same ranks are asked everywhere, so that every rank finds the same number: the root, the first and
  // the last.
  double slowest = 0;
  for (const Rank rank : {request.root, Rank{0}, transport_.size() - 1}) {
    slowest = std::max(slowest, schedule::predict(schedule, rank, elements * request.element_bytes(),
                                                  remote_ ? remote_link : default_link));
  }
  return slowest;
}

ScheduleEngine::Choice ScheduleEngine::named(const Request& request, std::string_view wanted) {
  const Algorithm* algorithm = &schedule::require_algorithm(request.collective, wanted);
  const std::uint32_t radix = algorithm->radices.front();
  const schedule::Shape shape{transport_.size(), transport_.rank(), radix, request.root};
  base::require(algorithm->accepts(shape), "{} '{}' does not work for {} ranks",
                schedule::name_of(request.collective), wanted, transport_.size());
  return {algorithm, radix, seconds(*algorithm, radix, request)};
}

ScheduleEngine::Choice ScheduleEngine::fastest(const Request& request) {
  Choice best{.seconds = std::numeric_limits<double>::infinity()};
  const bool canonical_only = !request.any_order && !order_is_free(request, transport_.size());
  for (const Algorithm& algorithm : schedule::algorithms()) {
    if (algorithm.collective != request.collective) continue;
    if (transport_.size() > direct_limit && (algorithm.name == "direct" || algorithm.name == "one_shot"))
      continue;
    for (const std::uint32_t radix : algorithm.radices) {
      if (!algorithm.accepts({transport_.size(), transport_.rank(), radix, request.root})) continue;
      const double predicted = seconds(algorithm, radix, request);
      if (predicted >= best.seconds) continue;
      if (canonical_only && !is_canonical(algorithm, request.root, radix)) continue;
      best = {&algorithm, radix, predicted};
    }
  }
  if (best.algorithm != nullptr) return best;
  // Many ranks and nothing else in canonical order: direct after all.
  return named(request, "direct");
}

ScheduleEngine::Choice ScheduleEngine::choose(const Request& request) {
  std::string_view wanted = request.algorithm;
  if (wanted.empty() && request.collective == Collective::allreduce) wanted = options_.algorithm;
  return wanted.empty() ? fastest(request) : named(request, wanted);
}

Seconds ScheduleEngine::predict(const Request& request) {
  return Seconds(choose(request).seconds);
}

const Algorithm* ScheduleEngine::reference(const Request& request) {
  return choose(request).algorithm;
}

/// Between nodes so long that no message is longer than the limit. MPI libraries send such messages at once;
/// for longer ones they ask the receiver first, and over TCP the question waits behind all bytes that are in
/// the sockets' queues.
std::uint64_t ScheduleEngine::segment_for(const schedule::Schedule& schedule, Rank root) const {
  if (options_.segment_bytes != 0) return options_.segment_bytes;
  if (!remote_) return local_segment_bytes;
  std::uint32_t longest = 1;
  schedule::Sink sink;
  // The same ranks are looked at everywhere.
  for (const Rank rank : {Rank{0}, root, schedule.ranks() - 1}) {
    for (std::uint32_t strand = 0; strand < schedule.strands(); ++strand) {
      for (std::uint32_t round = 0; round < schedule.rounds(rank, strand); ++round) {
        schedule.emit(rank, strand, round, sink);
        for (const schedule::Step& step : sink.steps()) longest = std::max(longest, step.blocks.size());
      }
    }
  }
  return options_.message_bytes * schedule.blocks() / longest;
}

std::shared_ptr<Plan> ScheduleEngine::plan_for(const Request& request) {
  const bool in_place = request.in_place(transport_.rank());
  if (auto known = plans_.find(request, in_place)) return known;
  const Choice choice = choose(request);
  const schedule::Generated schedule(*choice.algorithm, transport_.size(), request.root, choice.radix);
  auto plan =
      std::make_shared<Plan>(schedule, request, transport_.rank(), segment_for(schedule, request.root));
  plans_.insert(request, in_place, plan);
  return plan;
}

std::unique_ptr<Operation> ScheduleEngine::start(const Request& request, std::uint32_t sequence) {
  return std::make_unique<ScheduleOperation>(plan_for(request), request, transport_, calls_, node_, sequence,
                                             options_.segments_in_flight != 0 ? options_.segments_in_flight
                                             : remote_                        ? remote_segments
                                                                              : local_segments);
}

}  // namespace tutti::engine
