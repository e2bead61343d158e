// The emulator: does what a GPU does, and finds what must be found.
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <vector>

#include "simt/simt.hpp"
#include "simt/toys.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::simt;

TEST_CASE("threads know where they are, and shuffles, ballots and atomics do what they should") {
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    std::vector<std::uint32_t> out(3 * Census::threads);
    std::uint32_t count = 0;
    run<Census>({out.data(), &count, 3}, {seed});
    CHECK(count == 3 * Census::threads);
    for (unsigned i = 0; i < out.size(); ++i) {
      const unsigned thread = i % Census::threads;
      CHECK(out[i] == 1000 * (i / Census::threads) + (thread ^ 5U) + (thread / 32 == 1 ? 0xAAAA0000U : 0U));
    }
  }
}

TEST_CASE("a barrier orders shared memory; without it, values are wrong in some schedule") {
  std::vector<std::uint32_t> out(Reverse<true>::threads);
  const auto wrong = [&](std::uint64_t seed, auto kernel) {
    std::ranges::fill(out, 0U);
    run<decltype(kernel)>({out.data()}, {seed});
    unsigned count = 0;
    for (unsigned i = 0; i < out.size(); ++i) count += out[i] == out.size() - 1 - i ? 0 : 1;
    return count;
  };
  unsigned found = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CHECK(wrong(seed, Reverse<true>()) == 0);
    found += wrong(seed, Reverse<false>()) > 0 ? 1 : 0;
  }
  CHECK(found == 8);
}

TEST_CASE("who waits for nobody is named") {
  std::uint32_t out = 0;
  for (const std::uint64_t seed : {0U, 3U}) {
    CHECK_THROWS_WITH((run<Divergent<true>>({&out}, {seed})),
                      ContainsSubstring("32 wait for the block") && ContainsSubstring("32 have ended"));
    CHECK_THROWS_WITH((run<Divergent<false>>({&out}, {seed})),
                      ContainsSubstring("16 for their warp") && ContainsSubstring("48 have ended"));
  }
}

namespace {

sigjmp_buf after_fault;

void on_fault(int /*signal*/) {
  siglongjmp(after_fault, 1);
}

/// Whether this access is one that a device would not survive.
template <class Access>
bool faults(const Access& access) {
  struct sigaction action {};

  struct sigaction before {};

  action.sa_handler = on_fault;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  volatile bool faulted = false;
  if (sigsetjmp(after_fault, 1) == 0)
    access();
  else
    faulted = true;
  sigaction(SIGSEGV, &before, nullptr);
  return faulted;
}

}  // namespace

TEST_CASE("device memory ends where it ends") {
  for (const std::size_t bytes : {16U, 4096U, 5008U}) {
    const DeviceMemory memory(bytes);
    auto* data = memory.as<volatile std::byte>();
    CHECK_FALSE(faults([&] { data[0] = data[bytes - 1]; }));
    CHECK(faults([&] { data[bytes] = std::byte{1}; }));
    CHECK(faults([&] { static_cast<void>(*(data - 2 * 4096)); }));
  }
}
