#include "transport/faulty.hpp"

#include "support/catch.hpp"
#include "transport/loopback.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::transport;

TEST_CASE("the n-th call fails, and only that one") {
  for (std::uint64_t n = 1; n <= 3; ++n) {
    auto group = make_loopback(1, Protocol::eager);
    std::uint64_t calls = 0;
    const auto faulty = make_faulty(std::move(group.endpoints[0]), {.fail_at = n}, &calls);
    int value = 1;
    int received = 0;
    std::uint64_t failed = 0;
    Ticket receive = 0;
    const auto attempt = [&](const auto& call) {
      try {
        call();
      } catch (const PeerLostError&) {
        failed = calls;
      }
    };
    attempt([&] { faulty->send(0, {}, nullptr, &value, 4); });
    attempt([&] { receive = faulty->receive(0, {}, nullptr, &received, 4); });
    attempt([&] { faulty->test(receive); });
    CHECK(failed == n);
    CHECK(calls == 3);
  }
}

TEST_CASE("delayed messages arrive in the end") {
  auto group = make_loopback(1, Protocol::eager);
  const auto faulty = make_faulty(std::move(group.endpoints[0]), {.delay_turns = 5, .seed = 3});
  int longest = 0;
  for (int i = 0; i < 50; ++i) {
    int received = 0;
    const Ticket send = faulty->send(0, {}, nullptr, &i, 4);
    const Ticket receive = faulty->receive(0, {}, nullptr, &received, 4);
    int turns = 0;
    while (!faulty->test(receive)) ++turns;
    while (!faulty->test(send)) {
    }
    CHECK(received == i);
    longest = std::max(longest, turns);
  }
  CHECK(longest >= 1);
  CHECK(longest <= 5);
}
