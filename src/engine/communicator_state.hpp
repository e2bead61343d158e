#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/options.hpp"
#include "engine/progress.hpp"
#include "engine/schedule_engine.hpp"
#include "transport/transport.hpp"
#include "tutti/communicator.hpp"

namespace tutti::engine {

/// What every communicator of a session shares.
struct Runtime {
  base::CoreOptions options;
  std::shared_ptr<Progress> progress;
};

/// Behind a Communicator: checks calls, numbers operations, gives them to an engine and to progress.
class CommunicatorState {
 public:
  CommunicatorState(std::shared_ptr<const Runtime> runtime, std::unique_ptr<transport::Transport> transport);
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;
  /// Waits for what is on its way.
  ~CommunicatorState();

  Rank rank() const { return transport_->rank(); }

  Rank size() const { return transport_->size(); }

  transport::Transport& transport() { return *transport_; }

  ScheduleEngine& engine() { return engine_; }

  const Runtime& runtime() const { return *runtime_; }

  /// What the next operation would be called on in a request: defaults of the session filled in.
  Request prepare(Request request, const CallOptions& options) const;

  void run(const Request& request);
  std::shared_ptr<Pending> start(const Request& request);
  std::shared_ptr<CommunicatorState> split(int color, int key);

 private:
  void check(const Request& request) const;
  void check_alive();
  void forget_finished();
  /// The number of the next operation; waits until so few are unfinished that tags cannot repeat.
  std::uint32_t next_sequence();
  void poison(std::uint32_t sequence, const char* reason);

  std::shared_ptr<const Runtime> runtime_;
  std::unique_ptr<transport::Transport> transport_;
  ScheduleEngine engine_;
  std::uint32_t sequence_ = 0;
  std::vector<std::pair<std::uint32_t, std::shared_ptr<Pending>>> unfinished_;
  std::string failure_;
};

}  // namespace tutti::engine
