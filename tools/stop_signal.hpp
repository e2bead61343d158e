#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace tutti::tools {

/// Holds SIGTERM and SIGUSR1 back in this thread (and those made from it later) and tells when one has come;
/// the second one ends the process at once, whatever it is doing. SIGUSR1 is there because launchers pass it
/// on, but kill soon after a SIGTERM. Make it before other threads exist.
class StopSignal {
 public:
  /// Throws SystemError if the operating system refuses.
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  /// True from the first signal on.
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  void watch();

  std::atomic<bool> requested_{false};
  std::atomic<bool> leave_{false};
  sigset_t before_{};
  std::thread watcher_;
};

}  // namespace tutti::tools
