#include "base/wait.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace tutti::base {

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

WaitLimits WaitLimits::for_load(unsigned ranks_here, unsigned processors) {
  if (ranks_here <= processors) return {.spins = 2000, .yields = 200};
  return {.spins = 0, .yields = 20};
}

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

bool Ladder::turn() {
  if (turns_ < limits_.spins) {
    ++turns_;
    pause_processor();
    return false;
  }
  if (turns_ < limits_.spins + limits_.yields) {
    ++turns_;
    std::this_thread::yield();
    return true;
  }
  const Seconds nap = next_nap();
  std::this_thread::sleep_for(nap);
  nap_ = std::min(nap * 2, limits_.longest_nap);
  return true;
}

}  // namespace tutti::base
