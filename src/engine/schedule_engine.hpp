#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options.hpp"
#include "engine/choice.hpp"
#include "engine/lookout.hpp"
#include "engine/plan_cache.hpp"
#include "engine/request.hpp"
#include "schedule/cost.hpp"
#include "transport/transport.hpp"

namespace tutti::engine {

/// A message between machines where nothing was measured: 10 Gbit/s, and what the network's software takes.
inline constexpr schedule::Link default_remote_link{
    .latency_s = 25e-6, .seconds_per_byte = 8e-10, .reduce_seconds_per_byte = 5e-11};

/// Runs schedules over a transport. Chooses the algorithm by predicted time among those that are legal: with
/// canonical order only such as the checker has proved canonical for this rank count, in this process. Keeps
/// compiled plans.
class ScheduleEngine final : public CollectiveEngine {
 public:
  /// All must outlive the engine.
  ScheduleEngine(Lookout& lookout, const base::CoreOptions& options);

  /// Some ranks are on other nodes: another link, and other messages suit it.
  void set_remote(bool remote) { remote_ = remote; }

  /// What was measured of the links; nothing: the defaults stay.
  void set_links(const std::optional<schedule::Link>& local, const std::optional<schedule::Link>& remote);

  /// The link that predictions count with.
  const schedule::Link& link() const { return remote_ ? remote_link_ : local_link_; }

  std::string_view name() const override { return "schedule"; }

  bool accepts(const Request&) const override { return true; }

  Seconds predict(const Request& request) override;
  std::unique_ptr<Operation> start(const Request& request, std::uint32_t sequence) override;
  const schedule::Algorithm* reference(const Request& request) override;

  /// The schedule that a request gets, and its predicted time. Throws InvalidArgument if a named one does not
  /// exist or does not accept this rank count.
  struct Priced {
    Choice choice;
    double seconds = 0;
  };

  Priced choose(const Request& request);
  /// All that accept this rank count and keep the order, the cheapest first.
  std::vector<Priced> candidates(const Request& request);
  /// Why a schedule cannot run here; empty: it can.
  std::string refusal(const Request& request, const Choice& choice) const;
  /// The sums have the bits that the request asks for.
  bool keeps_order(const Request& request, const Choice& choice);
  /// Bytes of a segment of a schedule, as it is run.
  std::uint64_t segment_for(const schedule::Schedule& schedule, const Choice& choice,
                            const Request& request) const;
  std::uint32_t in_flight(const Choice& choice) const;

 private:
  bool is_canonical(const schedule::Algorithm& algorithm, Rank root, std::uint32_t radix);
  Priced named(const Request& request);
  Priced fastest(const Request& request);
  double seconds(const schedule::Algorithm& algorithm, std::uint32_t radix, const Request& request) const;
  std::shared_ptr<Plan> plan_for(const Request& request);

  transport::Transport& transport_;
  const base::CoreOptions& options_;
  Lookout& lookout_;
  bool remote_ = false;
  schedule::Link local_link_;
  schedule::Link remote_link_;
  PlanCache plans_;
  std::map<std::pair<const schedule::Algorithm*, std::pair<Rank, std::uint32_t>>, bool> canonical_;
};

}  // namespace tutti::engine
