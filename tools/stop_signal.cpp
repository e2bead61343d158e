#include "tools/stop_signal.hpp"

#include <pthread.h>

#include <cerrno>
#include <ctime>

#include "base/error.hpp"

namespace tutti::tools {
namespace {

sigset_t stopping() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = stopping();
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, &before_); error != 0)
    base::fail<SystemError>("cannot watch for SIGTERM: {}", base::errno_text(error));
  watcher_ = std::thread([this] { watch(); });
}

StopSignal::~StopSignal() {
  leave_.store(true, std::memory_order_relaxed);
  watcher_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignal::watch() {
  const sigset_t set = stopping();
  const timespec glance{0, 100'000'000};
  while (!leave_.load(std::memory_order_relaxed)) {
    const int signal = sigtimedwait(&set, nullptr, &glance);
    if (signal <= 0) continue;
    if (!requested_.exchange(true, std::memory_order_relaxed)) continue;
    std::signal(signal, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    raise(signal);
  }
}

}  // namespace tutti::tools
