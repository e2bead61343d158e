#include "engine/communicator_state.hpp"

#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "engine/overlap.hpp"

namespace tutti::engine {

using schedule::Collective;

CommunicatorState::CommunicatorState(std::shared_ptr<const Runtime> runtime,
                                     std::unique_ptr<transport::Transport> transport)
    : runtime_(std::move(runtime)),
      transport_(std::move(transport)),
      engine_(*transport_, runtime_->options) {}

Request CommunicatorState::prepare(Request request, const CallOptions& options) const {
  request.prescale = options.prescale;
  request.any_order = options.order ? *options.order == Order::any : runtime_->options.any_order;
  request.algorithm = options.algorithm;
  request.name = options.name;
  return request;
}

void CommunicatorState::check(const Request& request) const {
  const std::string where = fmt::format("{}{} on {}", schedule::name_of(request.collective),
                                        request.name.empty() ? "" : fmt::format(" '{}'", request.name),
                                        transport_->describe(rank()));
  base::require(request.root >= 0 && request.root < size(),
                "{}: root {} is not a rank of this communicator (0 to {})", where, request.root, size() - 1);
  base::require(std::isfinite(request.prescale), "{}: prescale is {}; it must be finite", where,
                request.prescale);
  base::require(request.prescale == 1.0 || is_floating(request.type),
                "{}: prescale {} needs a floating element type, not {}", where, request.prescale,
                name_of(request.type));
  const bool by_rank =
      request.collective == Collective::reduce_scatter || request.collective == Collective::allgather;
  const std::size_t copies = by_rank && request.counts.empty() ? static_cast<std::size_t>(size()) : 1;
  base::require(
      request.count <= std::numeric_limits<std::size_t>::max() / 2 / copies / request.element_bytes(),
      "{}: {} elements do not fit in memory", where, request.count);
  check_buffers(request, rank(), size(), where);
}

void CommunicatorState::check_alive() {
  forget_finished();
  if (!failure_.empty())
    base::fail<Error>("this communicator failed before and takes no further operations: {}", failure_);
}

CommunicatorState::~CommunicatorState() {
  for (const auto& [sequence, pending] : unfinished_) {
    while (!Progress::test(*pending)) std::this_thread::yield();
  }
  const std::scoped_lock lock(runtime_->progress->token());
  transport_.reset();
}

void CommunicatorState::forget_finished() {
  for (const auto& [sequence, pending] : unfinished_) {
    if (pending->finished() && pending->failed())
      poison(sequence, "an asynchronous operation failed; its wait() says how");
  }
  std::erase_if(unfinished_, [](const auto& entry) { return entry.second->finished(); });
}

std::uint32_t CommunicatorState::next_sequence() {
  while (!unfinished_.empty() && sequence_ - unfinished_.front().first >= transport::sequence_window) {
    // Its owner will see whether it failed; here only its end matters.
    while (!Progress::test(*unfinished_.front().second)) std::this_thread::yield();
    forget_finished();
  }
  return sequence_++;
}

void CommunicatorState::poison(std::uint32_t sequence, const char* reason) {
  if (failure_.empty()) failure_ = fmt::format("operation #{}: {}", sequence, reason);
}

void CommunicatorState::run(const Request& request) {
  check_alive();
  check(request);
  const std::uint32_t sequence = next_sequence();
  if (request.count == 0) return;
  std::unique_ptr<Operation> operation = engine_.start(request, sequence);
  try {
    runtime_->progress->run(std::move(operation), runtime_->options.timeout);
  } catch (const std::exception& error) {
    poison(sequence, error.what());
    throw;
  }
}

std::shared_ptr<Pending> CommunicatorState::start(const Request& request) {
  check_alive();
  check(request);
  const std::uint32_t sequence = next_sequence();
  if (request.count == 0) return nullptr;
  auto pending = runtime_->progress->add(engine_.start(request, sequence), runtime_->options.timeout);
  unfinished_.emplace_back(sequence, pending);
  return pending;
}

std::shared_ptr<CommunicatorState> CommunicatorState::split(int color, int key) {
  check_alive();
  base::require(color >= 0, "split on {}: color {} is negative", transport_->describe(rank()), color);
  runtime_->progress->drain();
  const std::scoped_lock lock(runtime_->progress->token());
  return std::make_shared<CommunicatorState>(runtime_, transport_->split(color, key));
}

}  // namespace tutti::engine
