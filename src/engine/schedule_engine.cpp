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

/// Within a node a message has no better size than as long as possible; buffers that are used again like to
/// stay in a cache.
constexpr std::uint64_t local_segment_bytes = 4 << 20;
constexpr std::uint32_t local_segments = 2;
/// Enough that the wire is full while this rank adds; more only fill the queues of sockets.
constexpr std::uint32_t remote_segments = 8;

}  // namespace

ScheduleEngine::ScheduleEngine(Lookout& lookout, const base::CoreOptions& options)
    : transport_(lookout.transport()),
      options_(options),
      lookout_(lookout),
      local_link_(default_link),
      remote_link_(default_remote_link) {
  if (!options.link) return;
  remote_link_.latency_s += options.link->delay.count();
  remote_link_.seconds_per_byte = 1 / options.link->bytes_per_second;
}

void ScheduleEngine::set_links(const std::optional<schedule::Link>& local,
                               const std::optional<schedule::Link>& remote) {
  local_link_ = local.value_or(local_link_);
  remote_link_ = remote.value_or(remote_link_);
}

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
    slowest =
        std::max(slowest, schedule::predict(schedule, rank, elements * request.element_bytes(), link()));
  }
  return slowest;
}

std::string ScheduleEngine::refusal(const Request& request, const Choice& choice) const {
  const schedule::Shape shape{transport_.size(), transport_.rank(), choice.radix, request.root};
  if (choice.algorithm->accepts(shape)) return {};
  return fmt::format("{} '{}' does not work for {} ranks", schedule::name_of(request.collective),
                     text_of(choice), transport_.size());
}

bool ScheduleEngine::keeps_order(const Request& request, const Choice& choice) {
  return request.any_order || order_is_free(request, transport_.size()) ||
         is_canonical(*choice.algorithm, request.root, choice.radix);
}

ScheduleEngine::Priced ScheduleEngine::named(const Request& request) {
  const Choice choice = parse_choice(request.collective, request.algorithm);
  base::require(choice.path == Path::schedule, "'{}' is no schedule", request.algorithm);
  const std::string problem = refusal(request, choice);
  base::require(problem.empty(), "{}", problem);
  return {choice, seconds(*choice.algorithm, choice.radix, request)};
}

ScheduleEngine::Priced ScheduleEngine::fastest(const Request& request) {
  Priced best{.choice = {}, .seconds = std::numeric_limits<double>::infinity()};
  for (const Algorithm& algorithm : schedule::algorithms()) {
    if (algorithm.collective != request.collective) continue;
    if (transport_.size() > direct_limit && (algorithm.name == "direct" || algorithm.name == "one_shot"))
      continue;
    for (const std::uint32_t radix : algorithm.radices) {
      const Choice choice{.path = Path::schedule, .algorithm = &algorithm, .radix = radix};
      if (!refusal(request, choice).empty()) continue;
      const double predicted = seconds(algorithm, radix, request);
      // The proof last: it costs more.
      if (predicted < best.seconds && keeps_order(request, choice)) best = {choice, predicted};
    }
  }
  if (best.choice.algorithm != nullptr) return best;
  // Many ranks and nothing else in canonical order: direct after all.
  Request direct = request;
  direct.algorithm = "direct";
  return named(direct);
}

std::vector<ScheduleEngine::Priced> ScheduleEngine::candidates(const Request& request) {
  std::vector<Priced> all;
  for (const Algorithm& algorithm : schedule::algorithms()) {
    if (algorithm.collective != request.collective) continue;
    for (const std::uint32_t radix : algorithm.radices) {
      const Choice choice{.path = Path::schedule, .algorithm = &algorithm, .radix = radix};
      if (refusal(request, choice).empty() && keeps_order(request, choice))
        all.push_back({choice, seconds(algorithm, radix, request)});
    }
  }
  std::ranges::stable_sort(all, {}, &Priced::seconds);
  return all;
}

ScheduleEngine::Priced ScheduleEngine::choose(const Request& request) {
  return request.algorithm.empty() ? fastest(request) : named(request);
}

Seconds ScheduleEngine::predict(const Request& request) {
  return Seconds(choose(request).seconds);
}

const Algorithm* ScheduleEngine::reference(const Request& request) {
  return choose(request).choice.algorithm;
}

/// Between nodes so long that no message is longer than the limit. MPI libraries send such messages at once;
/// for longer ones they ask the receiver first, and over TCP the question waits behind all bytes that are in
/// the sockets' queues.
std::uint64_t ScheduleEngine::segment_for(const schedule::Schedule& schedule, const Choice& choice,
                                          const Request& request) const {
  if (choice.segment_bytes != 0) return choice.segment_bytes;
  if (options_.segment_bytes != 0) return options_.segment_bytes;
  if (!remote_) return local_segment_bytes;
  std::uint32_t longest = 1;
  schedule::Sink sink;
  // The same ranks are looked at everywhere.
  for (const Rank rank : {Rank{0}, request.root, schedule.ranks() - 1}) {
    for (std::uint32_t strand = 0; strand < schedule.strands(); ++strand) {
      for (std::uint32_t round = 0; round < schedule.rounds(rank, strand); ++round) {
        schedule.emit(rank, strand, round, sink);
        for (const schedule::Step& step : sink.steps()) longest = std::max(longest, step.blocks.size());
      }
    }
  }
  // Partial sums may be wider than elements.
  const bool sums = schedule::adds(request.collective);
  const std::size_t wide =
      sums ? size_of(kernel::accumulator(request.type, request.op)) : size_of(request.type);
  const std::uint64_t bytes = options_.message_bytes * size_of(request.type) / wide;
  // Of reduce_scatter and allgather a segment is a part of one rank's block, of the others one of the buffer.
  const bool by_rank =
      request.collective == Collective::reduce_scatter || request.collective == Collective::allgather;
  return std::max<std::uint64_t>(1, bytes * (by_rank ? 1 : schedule.blocks()) / longest);
}

std::uint32_t ScheduleEngine::in_flight(const Choice& choice) const {
  if (choice.in_flight != 0) return choice.in_flight;
  if (options_.segments_in_flight != 0) return options_.segments_in_flight;
  return remote_ ? remote_segments : local_segments;
}

std::shared_ptr<Plan> ScheduleEngine::plan_for(const Request& request) {
  const bool in_place = request.in_place(transport_.rank());
  if (auto known = plans_.find(request, in_place)) return known;
  const Choice choice = choose(request).choice;
  const schedule::Generated schedule(*choice.algorithm, transport_.size(), request.root, choice.radix);
  auto plan = std::make_shared<Plan>(schedule, request, transport_.rank(),
                                     segment_for(schedule, choice, request), in_flight(choice));
  plans_.insert(request, in_place, plan);
  return plan;
}

std::unique_ptr<Operation> ScheduleEngine::start(const Request& request, std::uint32_t sequence) {
  return std::make_unique<ScheduleOperation>(plan_for(request), request, lookout_, sequence);
}

}  // namespace tutti::engine
