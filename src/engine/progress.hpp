#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/wait.hpp"
#include "engine/request.hpp"

namespace tutti::engine {

/// An operation that somebody will wait for later.
class Pending {
 public:
  explicit Pending(std::unique_ptr<Operation> operation, Seconds deadline)
      : operation_(std::move(operation)), deadline_(deadline) {}

  bool finished() const { return finished_.load(std::memory_order_acquire); }

  /// Of a finished one.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  friend class Progress;

  std::unique_ptr<Operation> operation_;
  Seconds deadline_;  ///< on the clock; 0: none
  Seconds idle_since_{-1};
  std::uint32_t idle_turns_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> finished_{false};
  std::shared_ptr<class Progress> progress_;
};

/// Who may advance operations when no call of tutti is running.
enum class Unattended : std::uint8_t { thread, calls_only };

/// Advances every operation of a process (in tests: of a rank). Whoever holds its token, the mutex, advances
/// all; a blocking caller takes the token turn by turn, so that nobody naps or blocks while holding it.
class Progress : public std::enable_shared_from_this<Progress> {
 public:
  Progress(std::shared_ptr<const base::Clock> clock, base::WaitLimits limits, Unattended unattended);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Before anything runs: called now and then by waits that make no call of the transport's, so that what
  /// the library below still has to send goes out.
  void set_poke(std::function<void()> poke) { poke_ = std::move(poke); }

  bool has_thread() const { return unattended_ == Unattended::thread; }

  /// Runs an operation to its end, and whatever else is pending with it. `timeout` 0: none. Throws what the
  /// operation throws, or TimeoutError.
  void run(std::unique_ptr<Operation> operation, Seconds timeout);
  /// The same for an operation that needs no token, as nothing else of its communicator is pending.
  void run_alone(Operation& operation, Seconds timeout);
  /// Takes an operation to be advanced from now on; makes its first progress at once.
  std::shared_ptr<Pending> add(std::unique_ptr<Operation> operation, Seconds timeout);
  /// Waits for one; throws what it threw.
  static void wait(Pending& pending);
  /// True if it is finished; advances once where no thread does.
  static bool test(Pending& pending);
  /// While an exception passes: waits no longer than `patience`, then gives the operation up and tells the
  /// other ranks.
  static void end(Pending& pending, Seconds patience);

  /// Serializes set-up that calls the transport with what the progress thread does.
  std::mutex& token() { return token_; }

 private:
  void watch(Operation& operation, Turn turn, Seconds& idle_since, std::uint32_t& idle_turns);
  void wait_alone(Operation& operation, Seconds timeout);
  void help();
  void drive(Operation& operation, Seconds timeout);
  bool advance_all();
  bool advance(Pending& pending);
  void settle(Pending& pending, std::exception_ptr error);
  void serve();
  /// False if `patience` (0: none) ran out.
  bool wait_for(Pending& pending, Seconds patience);

  std::shared_ptr<const base::Clock> clock_;
  base::WaitLimits limits_;
  Unattended unattended_;
  std::function<void()> poke_;
  std::mutex token_;
  std::vector<std::shared_ptr<Pending>> pending_;  ///< guarded by token_
  std::condition_variable work_;                   ///< the thread waits here for the first operation
  bool stop_ = false;
  std::mutex sleep_mutex_;
  std::condition_variable settled_;  ///< waiters wait here for the thread
  std::thread thread_;
};

}  // namespace tutti::engine
