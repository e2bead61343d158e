#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/options.hpp"
#include "engine/node/group.hpp"
#include "engine/plan_cache.hpp"
#include "engine/request.hpp"
#include "engine/signature.hpp"
#include "transport/transport.hpp"

namespace tutti::engine {

/// Runs schedules over a transport. Chooses the algorithm by predicted time among those that are legal: with
/// canonical order only such as the checker has proved canonical for this rank count, in this process. Keeps
/// compiled plans.
class ScheduleEngine final : public CollectiveEngine {
 public:
  /// All must outlive the engine.
  ScheduleEngine(transport::Transport& transport, const base::CoreOptions& options, const CallLog& calls);

  /// Where ranks share memory, trouble is told there too.
  void tell_also(node::Group* node) { node_ = node; }

  /// Some ranks are on other nodes: another link, and other messages suit it.
  void set_remote(bool remote) { remote_ = remote; }

  std::string_view name() const override { return "schedule"; }

  bool accepts(const Request&) const override { return true; }

  Seconds predict(const Request& request) override;
  std::unique_ptr<Operation> start(const Request& request, std::uint32_t sequence) override;
  const schedule::Algorithm* reference(const Request& request) override;

  /// The algorithm (and its radix) that a request gets. Throws InvalidArgument if a named one does not exist
  /// or does not accept this rank count.
  struct Choice {
    const schedule::Algorithm* algorithm = nullptr;
    std::uint32_t radix = 2;
    double seconds = 0;
  };

  Choice choose(const Request& request);

 private:
  bool is_canonical(const schedule::Algorithm& algorithm, Rank root, std::uint32_t radix);
  Choice named(const Request& request, std::string_view wanted);
  Choice fastest(const Request& request);
  double seconds(const schedule::Algorithm& algorithm, std::uint32_t radix, const Request& request) const;
  std::shared_ptr<Plan> plan_for(const Request& request);
  std::uint64_t segment_for(const schedule::Schedule& schedule, Rank root) const;

  transport::Transport& transport_;
  const base::CoreOptions& options_;
  const CallLog& calls_;
  node::Group* node_ = nullptr;
  bool remote_ = false;
  PlanCache plans_;
  std::map<std::pair<const schedule::Algorithm*, std::pair<Rank, std::uint32_t>>, bool> canonical_;
};

}  // namespace tutti::engine
