#include "engine/progress.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace tutti::engine {

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

bool Progress::advance(Pending& pending) {
  try {
    const Turn turn = pending.operation_->advance();
    if (turn == Turn::done) settle(pending, nullptr);
    if (turn == Turn::idle && pending.deadline_ != Seconds(0) && clock_->now() > pending.deadline_) {
      settle(pending, std::make_exception_ptr(TimeoutError(
                          fmt::format("deadline passed: {}; raise TUTTI_TIMEOUT if this is no fault",
                                      pending.operation_->describe()))));
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

void Progress::drive(Operation& operation, Seconds timeout) {
  const Seconds deadline = timeout == Seconds(0) ? timeout : clock_->now() + timeout;
  base::Ladder ladder(limits_);
  for (;;) {
    {
      const std::scoped_lock lock(token_);
      const Turn turn = operation.advance();
      if (turn == Turn::done) return;
      const bool others = !pending_.empty() && advance_all();
      if (turn == Turn::moved || others) {
        ladder.reset();
        continue;
      }
    }
    if (ladder.turn() && deadline != Seconds(0) && clock_->now() > deadline) {
      const std::scoped_lock lock(token_);
      base::fail<TimeoutError>("deadline of {} s passed: {}; raise TUTTI_TIMEOUT if this is no fault",
                               timeout.count(), operation.describe());
    }
  }
}

void Progress::drain() {
  base::Ladder ladder(limits_);
  for (;;) {
    {
      const std::scoped_lock lock(token_);
      if (advance_all()) ladder.reset();
      if (pending_.empty()) return;
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
  if (!pending.finished()) pending.progress_->wait_for(pending);
  if (pending.error_) std::rethrow_exception(std::exchange(pending.error_, nullptr));
}

void Progress::wait_for(Pending& pending) {
  base::Ladder ladder(limits_);
  while (!pending.finished()) {
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
}

bool Progress::test(Pending& pending) {
  if (pending.finished()) return true;
  Progress& progress = *pending.progress_;
  if (std::unique_lock lock(progress.token_, std::try_to_lock); lock) progress.advance_all();
  return pending.finished();
}

}  // namespace tutti::engine
