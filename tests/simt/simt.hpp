#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/kernels/cta.hpp"

/// Runs the kernels' own source on the CPU: every thread of a block is a fibre, which goes on until it must
/// wait for others. Which one goes on then is what a schedule decides. Under the thread sanitizer fibres are
/// threads to it, and barriers are what orders them: a missing one is a race that it names.
namespace tutti::simt {

/// A block cannot go on: some threads wait for others that have ended, or that wait elsewhere.
struct Stuck : std::logic_error {
  using std::logic_error::logic_error;
};

/// Who goes on when several could: in order, or drawn.
struct Schedule {
  std::uint64_t seed = 0;  ///< 0: in order
};

class Block;

/// What a kernel sees: see cuda/kernels/cta.hpp.
class Cta {
 public:
  Cta(Block& block, unsigned thread) : block_(block), thread_(thread) {}

  unsigned thread() const { return thread_; }

  unsigned lane() const { return thread_ % cuda::warp_lanes; }

  unsigned warp() const { return thread_ / cuda::warp_lanes; }

  unsigned block() const;
  unsigned blocks() const;
  void sync();

  template <class T>
  T shuffle_xor(T value, unsigned mask) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    const std::uint64_t other = exchange(bits, lane() ^ mask);
    std::memcpy(&value, &other, sizeof value);
    return value;
  }

  std::uint32_t ballot(bool condition);
  std::uint32_t add(std::uint32_t* place, std::uint32_t value);

 private:
  /// What lane `from` gives. All lanes of the warp.
  std::uint64_t exchange(std::uint64_t mine, unsigned from);

  Block& block_;
  unsigned thread_;
};

/// One thread block after the other, all of `threads`.
void run_blocks(unsigned blocks, unsigned threads, const Schedule& schedule,
                const std::function<void(unsigned block)>& begin, const std::function<void(Cta&)>& thread);

/// As a launch does. Shared memory is filled with 0xA7 before every block.
template <class Kernel>
void run(const typename Kernel::Args& args, const Schedule& schedule, unsigned most_blocks = 4) {
  const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(Kernel::blocks_for(args), most_blocks));
  using Shared = typename Kernel::Shared;
  const auto shared = std::make_unique<Shared>();
  run_blocks(
      blocks, Kernel::threads, schedule,
      [&](unsigned) { std::memset(static_cast<void*>(shared.get()), 0xA7, sizeof(Shared)); },
      [&](Cta& cta) { Kernel::run(cta, *shared, args); });
}

/// Memory as a device has it: nothing before and nothing behind may be touched. The end is that of a page,
/// but for what `alignment` needs.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes, std::size_t alignment = 16);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  std::byte* data() const { return data_; }

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void* pages_;
  std::size_t size_;
  std::byte* data_;
};

}  // namespace tutti::simt
