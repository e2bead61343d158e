#pragma once

#include <cstdint>

#include "cuda/kernels/cta.hpp"

/// Kernels that show what the emulator does, some of them with a fault that it must find.
namespace tutti::simt {

struct Census {
  static constexpr unsigned threads = 64;

  struct Args {
    std::uint32_t* out;
    std::uint32_t* count;
    unsigned blocks;
  };

  struct Shared {};

  static std::uint64_t blocks_for(const Args& args) { return args.blocks; }

  template <class Cta>
  TUTTI_DEVICE static void run(Cta& cta, Shared& /*shared*/, const Args& args) {
    const std::uint32_t other = cta.shuffle_xor(cta.thread(), 5);
    const std::uint32_t odd = cta.ballot(cta.lane() % 2 == 1);
    const std::uint32_t mark = cta.warp() == 1 ? odd & 0xFFFF0000U : 0;
    args.out[cta.block() * threads + cta.thread()] = 1000 * cta.block() + other + mark;
    cta.add(args.count, 1);
  }
};

/// Writes shared memory and reads what others wrote, with the barrier that this needs or without.
template <bool has_barrier>
struct Reverse {
  static constexpr unsigned threads = 64;

  struct Args {
    std::uint32_t* out;
  };

  struct Shared {
    std::uint32_t values[threads];
  };

  static std::uint64_t blocks_for(const Args& /*args*/) { return 1; }

  template <class Cta>
  TUTTI_DEVICE static void run(Cta& cta, Shared& shared, const Args& args) {
    shared.values[cta.thread()] = cta.thread();  // the planted race: its write
    if constexpr (has_barrier) cta.sync();
    args.out[cta.thread()] = shared.values[threads - 1 - cta.thread()];  // the planted race: its read
  }
};

/// Half of the threads, whole warps or half warps, leave before the others wait.
template <bool by_warp>
struct Divergent {
  static constexpr unsigned threads = 64;

  struct Args {
    std::uint32_t* out;
  };

  struct Shared {};

  static std::uint64_t blocks_for(const Args& /*args*/) { return 1; }

  template <class Cta>
  TUTTI_DEVICE static void run(Cta& cta, Shared& /*shared*/, const Args& args) {
    if (by_warp ? cta.warp() == 1 : cta.thread() >= 16) return;
    if constexpr (by_warp)
      cta.sync();
    else
      *args.out = cta.shuffle_xor(cta.thread(), 1);
  }
};

}  // namespace tutti::simt
