#include "simt/simt.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>

#include "base/random.hpp"
#include "simt/sanitizers.hpp"

namespace tutti::simt {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

enum class Waits : std::uint8_t { no, at_sync, at_warp, ended };

struct Fibre {
  ucontext_t context{};
  Waits waits = Waits::no;
  SanitizerFibre sanitizer;
};

void* map_pages(std::size_t bytes, int protection) {
  void* pages = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

/// Made once, used by one block after the other.
class Stacks {
 public:
  explicit Stacks(unsigned count)
      : bytes_(count * stack_bytes), base_(map_pages(bytes_, PROT_READ | PROT_WRITE)) {}

  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  ~Stacks() { munmap(base_, bytes_); }

  std::byte* of(unsigned thread) const { return static_cast<std::byte*>(base_) + thread * stack_bytes; }

 private:
  std::size_t bytes_;
  void* base_;
};

}  // namespace

class Block {
 public:
  Block(unsigned number, unsigned blocks, unsigned threads, const Schedule& schedule, const Stacks& stacks,
        const std::function<void(Cta&)>& body)
      : number_(number),
        blocks_(blocks),
        random_(schedule.seed, number),
        in_order_(schedule.seed == 0),
        stacks_(stacks),
        body_(body),
        fibres_(threads),
        warps_((threads + cuda::warp_lanes - 1) / cuda::warp_lanes) {
    for (unsigned thread = 0; thread < threads; ++thread) prepare(thread);
  }

  unsigned number() const { return number_; }

  unsigned blocks() const { return blocks_; }

  /// Until all threads have ended.
  void run() {
    main_.is_current();
    main_.release(&begun_);
    while (const unsigned left = unfinished()) {
      std::vector<unsigned> ready = runnable();
      if (ready.empty()) throw Stuck(why_stuck(left));
      if (!in_order_) shuffle(ready);
      for (const unsigned thread : ready) {
        resume(thread);
        if (error_) std::rethrow_exception(error_);
      }
    }
    main_.acquire(&ended_);
  }

  void wait_for_block(unsigned thread) {
    main_.release(&synced_);
    fibres_[thread].waits = Waits::at_sync;
    if (waiting(0, size(), Waits::at_sync) == size()) wake(0, size());
    leave(thread);
    main_.acquire(&synced_);
  }

  std::uint64_t exchange(unsigned thread, std::uint64_t mine, unsigned from) {
    Warp& warp = warps_[thread / cuda::warp_lanes];
    const unsigned lane = thread % cuda::warp_lanes;
    warp.given[lane] = mine;
    wait_for_warp(thread);
    const std::uint64_t other = warp.given[from % cuda::warp_lanes];
    wait_for_warp(thread);
    return other;
  }

  std::uint32_t ballot(unsigned thread, bool condition) {
    Warp& warp = warps_[thread / cuda::warp_lanes];
    warp.given[thread % cuda::warp_lanes] = condition ? 1 : 0;
    wait_for_warp(thread);
    std::uint32_t all = 0;
    for (unsigned lane = 0; lane < cuda::warp_lanes; ++lane)
      all |= static_cast<std::uint32_t>(warp.given[lane]) << lane;
    wait_for_warp(thread);
    return all;
  }

 private:
  struct Warp {
    std::array<std::uint64_t, cuda::warp_lanes> given{};
  };

  unsigned size() const { return static_cast<unsigned>(fibres_.size()); }

  void prepare(unsigned thread) {
    Fibre& fibre = fibres_[thread];
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = stacks_.of(thread);
    fibre.context.uc_stack.ss_size = stack_bytes;
    fibre.context.uc_link = nullptr;
    fibre.sanitizer.begin(stacks_.of(thread), stack_bytes);
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&fibre.context, reinterpret_cast<void (*)()>(&Block::enter), 3,
                static_cast<unsigned>(self >> 32U), static_cast<unsigned>(self), thread);
  }

  static void enter(unsigned high, unsigned low, unsigned thread) {
    auto* block = reinterpret_cast<Block*>(std::uintptr_t{high} << 32U | low);
    block->run_thread(thread);
  }

  void run_thread(unsigned thread) {
    fibres_[thread].sanitizer.arrived();
    main_.acquire(&begun_);
    try {
      Cta cta(*this, thread);
      body_(cta);
    } catch (...) {
      error_ = std::current_exception();
    }
    main_.release(&ended_);
    fibres_[thread].waits = Waits::ended;
    fibres_[thread].sanitizer.leave_for_good(main_);
    swapcontext(&fibres_[thread].context, &scheduler_);
  }

  void resume(unsigned thread) {
    main_.leave(fibres_[thread].sanitizer);
    swapcontext(&scheduler_, &fibres_[thread].context);
    main_.arrived();
  }

  void leave(unsigned thread) {
    fibres_[thread].sanitizer.leave(main_);
    swapcontext(&fibres_[thread].context, &scheduler_);
    fibres_[thread].sanitizer.arrived();
  }

  void shuffle(std::vector<unsigned>& threads) {
    for (std::size_t i = threads.size(); i > 1; --i) std::swap(threads[i - 1], threads[random_.below(i)]);
  }

  /// Orders no accesses to memory: a shuffle of a GPU does not either.
  void wait_for_warp(unsigned thread) {
    const unsigned first = thread / cuda::warp_lanes * cuda::warp_lanes;
    const unsigned last = std::min(first + cuda::warp_lanes, size());
    fibres_[thread].waits = Waits::at_warp;
    if (waiting(first, last, Waits::at_warp) == last - first) wake(first, last);
    leave(thread);
  }

  unsigned waiting(unsigned first, unsigned last, Waits where) const {
    unsigned count = 0;
    for (unsigned thread = first; thread < last; ++thread) count += fibres_[thread].waits == where ? 1 : 0;
    return count;
  }

  void wake(unsigned first, unsigned last) {
    for (unsigned thread = first; thread < last; ++thread) fibres_[thread].waits = Waits::no;
  }

  unsigned unfinished() const { return size() - waiting(0, size(), Waits::ended); }

  std::vector<unsigned> runnable() const {
    std::vector<unsigned> ready;
    for (unsigned thread = 0; thread < size(); ++thread) {
      if (fibres_[thread].waits == Waits::no) ready.push_back(thread);
    }
    return ready;
  }

  std::string why_stuck(unsigned left) const {
    return fmt::format(
        "block {}: none of {} threads can go on: {} wait for the block, {} for their warp, {} have ended",
        number_, left, waiting(0, size(), Waits::at_sync), waiting(0, size(), Waits::at_warp),
        waiting(0, size(), Waits::ended));
  }

  unsigned number_;
  unsigned blocks_;
  base::Random random_;
  bool in_order_;
  const Stacks& stacks_;
  const std::function<void(Cta&)>& body_;
  std::vector<Fibre> fibres_;
  std::vector<Warp> warps_;
  ucontext_t scheduler_{};
  SanitizerFibre main_;
  std::exception_ptr error_;
  // Only addresses, for the thread sanitizer: what orders what.
  char begun_ = 0;
  char ended_ = 0;
  char synced_ = 0;
};

unsigned Cta::block() const {
  return block_.number();
}

unsigned Cta::blocks() const {
  return block_.blocks();
}

void Cta::sync() {
  block_.wait_for_block(thread_);
}

std::uint64_t Cta::exchange(std::uint64_t mine, unsigned from) {
  return block_.exchange(thread_, mine, from);
}

std::uint32_t Cta::ballot(bool condition) {
  return block_.ballot(thread_, condition);
}

std::uint32_t Cta::add(std::uint32_t* place, std::uint32_t value) {
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}

void run_blocks(unsigned blocks, unsigned threads, const Schedule& schedule,
                const std::function<void(unsigned block)>& begin, const std::function<void(Cta&)>& thread) {
  const Stacks stacks(threads);
  for (unsigned number = 0; number < blocks; ++number) {
    begin(number);
    Block(number, blocks, threads, schedule, stacks, thread).run();
  }
}

DeviceMemory::DeviceMemory(std::size_t bytes, std::size_t alignment) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inner = (bytes + alignment + page - 1) / page * page;
  size_ = inner + 2 * page;
  pages_ = map_pages(size_, PROT_NONE);
  auto* first = static_cast<std::byte*>(pages_) + page;
  if (mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  data_ = first + (inner - bytes) / alignment * alignment;
}

DeviceMemory::~DeviceMemory() {
  munmap(pages_, size_);
}

}  // namespace tutti::simt
