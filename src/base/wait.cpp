#include "base/wait.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
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

ProcessorMask usable_mask() {
  ProcessorMask mask{};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return mask;
  for (std::size_t i = 0; i < std::min<std::size_t>(CPU_SETSIZE, mask.size() * 64); ++i) {
    if (CPU_ISSET(i, &set)) mask[i / 64] |= std::uint64_t{1} << i % 64;
  }
  return mask;
}

unsigned count_of(const ProcessorMask& mask) {
  unsigned count = 0;
  for (const std::uint64_t word : mask) count += static_cast<unsigned>(std::popcount(word));
  return std::max(1U, count);
}

unsigned usable_processors() {
  return count_of(usable_mask());
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
