#pragma once

#include <cstddef>
#include <cstdint>

/// What kernels are written in, so that their own source runs on a GPU and, under tests/simt, on the CPU.
///
/// A kernel is a type: `threads` in a block; `Args`, passed by value; `Shared`, its shared memory; and
/// `run(cta, shared, args)`, what one thread does. `cta` is that thread's view of its block:
///   thread() block() blocks()      where it is
///   lane() warp()                  within its block: thread() % 32, thread() / 32
///   sync()                         all threads of the block
///   shuffle_xor(value, mask)       the value of lane() ^ mask; all lanes of the warp
///   ballot(condition)              bit i: the condition of lane i; all lanes of the warp
///   add(place, value)              atomic; returns what was there before
/// All that a kernel calls is compiled for both sides: TUTTI_DEVICE before it.
#ifdef __CUDACC__
#define TUTTI_DEVICE __device__
#else
#define TUTTI_DEVICE
#endif

namespace tutti::cuda {

inline constexpr unsigned warp_lanes = 32;

/// Four neighbours in one access.
struct alignas(16) Four {
  float v[4];
};

/// Whether four floats at every fourth place from here may be read in one access.
TUTTI_DEVICE inline bool is_aligned(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % alignof(Four) == 0;
}

/// The first `valid` (0 to 4) of four values; zeros for the others, which are not touched.
TUTTI_DEVICE inline Four load_four(const float* from, unsigned valid) {
  if (valid == 4 && is_aligned(from)) return *reinterpret_cast<const Four*>(from);
  Four four{};
  for (unsigned j = 0; j < 4; ++j) {
    if (j < valid) four.v[j] = from[j];
  }
  return four;
}

TUTTI_DEVICE inline void store_four(float* to, const Four& four, unsigned valid) {
  if (valid == 4 && is_aligned(to)) {
    *reinterpret_cast<Four*>(to) = four;
    return;
  }
  for (unsigned j = 0; j < 4; ++j) {
    if (j < valid) to[j] = four.v[j];
  }
}

/// One of four, by a number that is not known when this is compiled. Values, not an array: indexing that
/// would put it into memory.
template <class T>
TUTTI_DEVICE inline T pick(T a, T b, T c, T d, unsigned which) {
  const T low = (which & 1U) != 0 ? b : a;
  const T high = (which & 1U) != 0 ? d : c;
  return (which & 2U) != 0 ? high : low;
}

/// How many of `count` from `at` a thread has that takes four.
TUTTI_DEVICE inline unsigned valid_of(std::uint64_t count, std::uint64_t at) {
  return at >= count ? 0U : count - at >= 4 ? 4U : static_cast<unsigned>(count - at);
}

/// Blocks of threads that give every thread four of `count` elements.
inline std::uint64_t blocks_of_fours(std::uint64_t count, unsigned threads) {
  const std::uint64_t each = std::uint64_t{4} * threads;
  return (count + each - 1) / each;
}

/// Calls visit(at, valid) for every four elements that are this thread's.
template <class Cta, class Visit>
TUTTI_DEVICE void each_four(Cta& cta, unsigned threads, std::uint64_t count, const Visit& visit) {
  const std::uint64_t stride = std::uint64_t{4} * threads * cta.blocks();
  for (std::uint64_t at = 4 * (std::uint64_t{cta.block()} * threads + cta.thread()); at < count; at += stride)
    visit(at, valid_of(count, at));
}

}  // namespace tutti::cuda
