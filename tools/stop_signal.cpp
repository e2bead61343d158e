#include "tools/stop_signal.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <csignal>

#include <cerrno>

#include "base/error.hpp"

namespace tutti::tools {
namespace {

sigset_t termination() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = termination();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) base::fail<SystemError>("cannot watch for SIGTERM: {}", base::errno_text(errno));
}

StopSignal::~StopSignal() {
  close(descriptor_);
  const sigset_t set = termination();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool StopSignal::requested() {
  signalfd_siginfo info{};
  if (!requested_ && read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    requested_ = true;
    const sigset_t set = termination();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
  return requested_;
}

}  // namespace tutti::tools
