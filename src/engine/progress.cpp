#include "engine/progress.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace tutti::engine {
namespace {

constexpr std::uint32_t turns_between_looks = 64;

/// Of one that may be woken: the waker does not make sure that it sees the sleeper.
constexpr Seconds longest_sleep{1e-3};

}  // namespace

Progress::Progress(std::shared_ptr<const base::Clock> clock, base::WaitLimits limits, Unattended unattended)
    : clock_(std::move(clock)), limits_(limits), unattended_(unattended) {}

Progress::~Progress() {
  {
    const std::scoped_lock lock(token_);
    stop_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Looks around once in a while when nothing moves.
void Progress::watch(Operation& operation, Turn turn, Seconds& idle_since, std::uint32_t& idle_turns) {
  if (turn != Turn::idle) {
    idle_turns = 0;
  } else if (++idle_turns % turns_between_looks == 0) {
    const Seconds now = clock_->now();
    if (idle_turns == turns_between_looks) idle_since = now;
    operation.look_around(now - idle_since);
  }
}

bool Progress::advance(Pending& pending) {
  try {
    const Turn turn = pending.operation_->advance();
    watch(*pending.operation_, turn, pending.idle_since_, pending.idle_turns_);
    if (turn == Turn::done) settle(pending, nullptr);
    if (turn != Turn::done && pending.deadline_ != Seconds(0) && clock_->now() > pending.deadline_) {
      const std::string text = fmt::format("deadline passed: {}; raise TUTTI_TIMEOUT if this is no fault",
                                           pending.operation_->describe());
      pending.operation_->abandon(text);
      settle(pending, std::make_exception_ptr(TimeoutError(text)));
      return true;
    }
    return turn != Turn::idle;
  } catch (...) {
    settle(pending, std::current_exception());
    return true;
  }
}

void Progress::settle(Pending& pending, std::exception_ptr error) {
  pending.operation_.reset();
  pending.failed_.store(error != nullptr, std::memory_order_relaxed);
  pending.error_ = std::move(error);
  {
    const std::scoped_lock lock(sleep_mutex_);
    pending.finished_.store(true, std::memory_order_release);
  }
  settled_.notify_all();
}

bool Progress::advance_all() {
  bool moved = false;
  for (const auto& pending : pending_) {
    if (advance(*pending)) moved = true;
  }
  std::erase_if(pending_, [](const auto& pending) { return pending->finished(); });
  return moved;
}

void Progress::run(std::unique_ptr<Operation> operation, Seconds timeout) {
  try {
    drive(*operation, timeout);
  } catch (...) {
    // Its messages are taken back, and the transport below is for the holder of the token only.
    const std::scoped_lock lock(token_);
    operation.reset();
    throw;
  }
}

void Progress::run_alone(Operation& operation, Seconds timeout) {
  for (std::uint32_t spins = 0; spins <= limits_.spins;) {
    const Turn turn = operation.advance();
    if (turn == Turn::done) return;
    spins = turn == Turn::moved ? 0 : spins + 1;
    base::pause_processor();
  }
  wait_alone(operation, timeout);
}

/// Beyond the first rung of the ladder.
void Progress::wait_alone(Operation& operation, Seconds timeout) {
  Seconds idle_since = clock_->now();
  const Seconds deadline = timeout == Seconds(0) ? timeout : idle_since + timeout;
  std::uint32_t idle = 0;
  for (;;) {
    const Turn turn = operation.advance();
    if (turn == Turn::done) return;
    if (turn == Turn::moved) {
      idle = 0;
      continue;
    }
    help();
    if (idle++ < limits_.yields) {
      std::this_thread::yield();
      continue;
    }
    operation.sleep(longest_sleep);
    const Seconds now = clock_->now();
    if (idle == limits_.yields + 1) idle_since = now;
    if (deadline != Seconds(0) && now > deadline) {
      const std::string text =
          fmt::format("deadline of {} s passed: {}; raise TUTTI_TIMEOUT if this is no fault", timeout.count(),
                      operation.describe());
      operation.abandon(text);
      throw TimeoutError(text);
    }
    if (idle > limits_.yields + 2) operation.look_around(now - idle_since);
  }
}

/// Advances what is pending elsewhere, where no thread does it.
void Progress::help() {
  if (has_thread() && !poke_) return;
  std::unique_lock lock(token_, std::try_to_lock);
  if (!lock) return;
  if (!has_thread() && !pending_.empty()) advance_all();
  if (poke_) poke_();
}

void Progress::drive(Operation& operation, Seconds timeout) {
  const Seconds deadline = timeout == Seconds(0) ? timeout : clock_->now() + timeout;
  base::Ladder ladder(limits_);
  Seconds idle_since{0};
  std::uint32_t idle_turns = 0;
  for (;;) {
    {
      const std::scoped_lock lock(token_);
      const Turn turn = operation.advance();
      if (turn == Turn::done) return;
      watch(operation, turn, idle_since, idle_turns);
      const bool others = !pending_.empty() && advance_all();
      if (deadline != Seconds(0) && idle_turns % turns_between_looks == 1 && clock_->now() > deadline) {
        const std::string text =
            fmt::format("deadline of {} s passed: {}; raise TUTTI_TIMEOUT if this is no fault",
                        timeout.count(), operation.describe());
        operation.abandon(text);
        throw TimeoutError(text);
      }
      if (turn == Turn::moved || others) {
        ladder.reset();
        continue;
      }
    }
    ladder.turn();
  }
}

std::shared_ptr<Pending> Progress::add(std::unique_ptr<Operation> operation, Seconds timeout) {
  const Seconds deadline = timeout == Seconds(0) ? timeout : clock_->now() + timeout;
  auto pending = std::make_shared<Pending>(std::move(operation), deadline);
  pending->progress_ = shared_from_this();
  {
    const std::scoped_lock lock(token_);
    advance(*pending);
    if (pending->finished()) return pending;
    pending_.push_back(pending);
    if (unattended_ == Unattended::thread && !thread_.joinable()) thread_ = std::thread([this] { serve(); });
  }
  work_.notify_one();
  return pending;
}

void Progress::serve() {
  base::Ladder ladder(limits_);
  for (;;) {
    {
      std::unique_lock lock(token_);
      if (pending_.empty()) {
        work_.wait(lock, [this] { return stop_ || !pending_.empty(); });
        ladder.reset();
      }
      if (stop_) return;
      if (advance_all()) ladder.reset();
    }
    ladder.turn();
  }
}

void Progress::wait(Pending& pending) {
  if (!pending.finished()) pending.progress_->wait_for(pending, Seconds(0));
  if (pending.error_) std::rethrow_exception(std::exchange(pending.error_, nullptr));
}

void Progress::end(Pending& pending, Seconds patience) {
  if (pending.finished() || pending.progress_->wait_for(pending, patience)) return;
  Progress& progress = *pending.progress_;
  const std::scoped_lock lock(progress.token_);
  if (pending.finished()) return;
  const std::string text =
      fmt::format("given up while an exception passes through this rank: {}", pending.operation_->describe());
  pending.operation_->abandon(text);
  progress.settle(pending, std::make_exception_ptr(Error(text)));
  std::erase_if(progress.pending_, [](const auto& other) { return other->finished(); });
}

bool Progress::wait_for(Pending& pending, Seconds patience) {
  base::Ladder ladder(limits_);
  const Seconds deadline = clock_->now() + patience;
  while (!pending.finished()) {
    if (patience != Seconds(0) && clock_->now() > deadline) return false;
    bool moved = false;
    if (std::unique_lock lock(token_, std::try_to_lock); lock) moved = advance_all();
    if (moved) {
      ladder.reset();
    } else if (has_thread() && ladder.about_to_sleep()) {
      // The thread goes on; it wakes us when something settles.
      std::unique_lock lock(sleep_mutex_);
      settled_.wait_for(lock, std::chrono::milliseconds(10), [&] { return pending.finished(); });
    } else {
      ladder.turn();
    }
  }
  return true;
}

bool Progress::test(Pending& pending) {
  if (pending.finished()) return true;
  Progress& progress = *pending.progress_;
  if (std::unique_lock lock(progress.token_, std::try_to_lock); lock) progress.advance_all();
  return pending.finished();
}

}  // namespace tutti::engine
