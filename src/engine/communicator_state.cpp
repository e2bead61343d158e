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
      engine_(*transport_, runtime_->options, calls_) {}

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

void CommunicatorState::check_alive(const char* call) {
  base::require(
      runtime_->only_thread == std::thread::id() || runtime_->only_thread == std::this_thread::get_id(),
      "{} on {}: called from another thread than the one that initialized MPI, which was not "
      "asked for more threads; initialize it with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
      call, transport_->describe(rank()));
  forget_finished();
  if (!failure_.empty())
    base::fail<Error>("this communicator failed before and takes no further operations: {}", failure_);
}

CommunicatorState::~CommunicatorState() {
  const bool unwinding = std::uncaught_exceptions() > exceptions_;
  for (const auto& [sequence, pending] : unfinished_) {
    if (unwinding) Progress::end(*pending, patience_while_unwinding);
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

std::uint32_t CommunicatorState::number(const Request& request) {
  const std::uint32_t sequence = calls_.add(request);
  while (!unfinished_.empty() && sequence - unfinished_.front().first >= transport::sequence_window) {
    // Its owner will see whether it failed; here only its end matters.
    while (!Progress::test(*unfinished_.front().second)) std::this_thread::yield();
    forget_finished();
  }
  return sequence;
}

void CommunicatorState::poison(std::uint32_t sequence, const char* reason) {
  if (failure_.empty()) failure_ = fmt::format("operation #{}: {}", sequence, reason);
}

void CommunicatorState::run(const Request& request) {
  check_alive(schedule::name_of(request.collective).data());
  check(request);
  const std::uint32_t sequence = number(request);
  std::unique_ptr<Operation> operation = engine_.start(request, sequence);
  try {
    runtime_->progress->run(std::move(operation), runtime_->options.timeout);
  } catch (const std::exception& error) {
    poison(sequence, error.what());
    throw;
  }
}

std::shared_ptr<Pending> CommunicatorState::start(const Request& request) {
  check_alive(schedule::name_of(request.collective).data());
  check(request);
  const std::uint32_t sequence = number(request);
  auto pending = runtime_->progress->add(engine_.start(request, sequence), runtime_->options.timeout);
  unfinished_.emplace_back(sequence, pending);
  return pending;
}

std::vector<std::int32_t> CommunicatorState::exchange_colors(int color) {
  const std::int32_t mine = color;
  std::vector<std::int32_t> all(static_cast<std::size_t>(size()));
  run({.collective = Collective::allgather,
       .input = &mine,
       .output = all.data(),
       .count = 1,
       .type = DType::i32,
       .name = "split"});
  return all;
}

std::shared_ptr<CommunicatorState> CommunicatorState::split(int color, int key) {
  check_alive("split");
  // Once all have the colors, all are here: nobody blocks below for long, whatever else is on its way.
  const std::vector<std::int32_t> colors = exchange_colors(color);
  for (Rank r = 0; r < size(); ++r) {
    const std::int32_t theirs = colors[static_cast<std::size_t>(r)];
    base::require(theirs >= 0, "split: color {} of {} is negative", theirs, transport_->describe(r));
  }
  const std::scoped_lock lock(runtime_->progress->token());
  return std::make_shared<CommunicatorState>(runtime_, transport_->split(color, key));
}

}  // namespace tutti::engine
