#include "transport/loopback.hpp"

#include <array>
#include <future>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::transport;

TEST_CASE("an eager send is done at once, a rendezvous send only with its receive") {
  const std::vector<int> sent{1, 2, 3};
  for (const auto protocol : {Protocol::eager, Protocol::rendezvous}) {
    auto group = make_loopback(2, protocol);
    std::vector<int> received(3);
    const Ticket send = group.endpoints[0]->send(1, {}, nullptr, sent.data(), 12);
    const bool done = group.endpoints[0]->test(send);
    CHECK(done == (protocol == Protocol::eager));
    const Ticket receive = group.endpoints[1]->receive(0, {}, nullptr, received.data(), 12);
    CHECK(group.endpoints[1]->test(receive));
    if (!done) CHECK(group.endpoints[0]->test(send));
    CHECK(received == sent);
  }
}

TEST_CASE("messages match by pair and tag, in order within a tag") {
  for (const auto protocol : {Protocol::eager, Protocol::rendezvous}) {
    auto group = make_loopback(3, protocol);
    const std::array<int, 4> values{10, 11, 12, 13};
    group.endpoints[0]->send(2, {.sequence = 1}, nullptr, &values[0], 4);
    group.endpoints[0]->send(2, {.sequence = 1}, nullptr, &values[1], 4);
    group.endpoints[0]->send(2, {.sequence = 1, .segment = 1}, nullptr, &values[2], 4);
    group.endpoints[1]->send(2, {.sequence = 1}, nullptr, &values[3], 4);
    std::array<int, 4> got{};
    Transport& last = *group.endpoints[2];
    const std::array<Ticket, 4> tickets{last.receive(0, {.sequence = 1, .segment = 1}, nullptr, &got[2], 4),
                                        last.receive(1, {.sequence = 1}, nullptr, &got[3], 4),
                                        last.receive(0, {.sequence = 1}, nullptr, &got[0], 4),
                                        last.receive(0, {.sequence = 1}, nullptr, &got[1], 4)};
    for (const Ticket ticket : tickets) CHECK(last.test(ticket));
    CHECK(got == values);
  }
}

TEST_CASE("another size than expected is a mismatch on both sides") {
  auto group = make_loopback(2, Protocol::rendezvous);
  std::array<int, 4> buffer{};
  const Ticket send = group.endpoints[0]->send(1, {}, nullptr, buffer.data(), 8);
  const Ticket receive = group.endpoints[1]->receive(0, {}, nullptr, buffer.data(), 12);
  CHECK_THROWS_WITH(group.endpoints[1]->test(receive),
                    ContainsSubstring("rank 0 sent 8 bytes where rank 1 expected 12"));
  CHECK_THROWS_AS(group.endpoints[0]->test(send), MismatchError);
}

TEST_CASE("a cancelled receive takes no message, a cancelled send gives none") {
  auto group = make_loopback(2, Protocol::rendezvous);
  int value = 5;
  int first = 0;
  int second = 0;
  const Ticket cancelled = group.endpoints[1]->receive(0, {}, nullptr, &first, 4);
  group.endpoints[1]->cancel(cancelled);
  const Ticket dropped = group.endpoints[0]->send(1, {}, nullptr, &first, 4);
  group.endpoints[0]->cancel(dropped);
  group.endpoints[0]->send(1, {}, nullptr, &value, 4);
  const Ticket receive = group.endpoints[1]->receive(0, {}, nullptr, &second, 4);
  CHECK(group.endpoints[1]->test(receive));
  CHECK(first == 0);
  CHECK(second == 5);
}

TEST_CASE("split numbers the members by key, then by rank, and keeps the groups apart") {
  auto group = make_loopback(5, Protocol::eager);
  std::vector<std::future<std::array<Rank, 2>>> results;
  std::vector<std::unique_ptr<Transport>> parts(5);
  for (Rank rank = 0; rank < 5; ++rank) {
    results.push_back(std::async(std::launch::async, [&, rank] {
      auto& part = parts[static_cast<std::size_t>(rank)];
      part = group.endpoints[static_cast<std::size_t>(rank)]->split(rank % 2, rank == 4 ? -1 : 0);
      return std::array<Rank, 2>{part->rank(), part->size()};
    }));
  }
  const std::vector<std::array<Rank, 2>> expected{{1, 3}, {0, 2}, {2, 3}, {1, 2}, {0, 3}};
  for (std::size_t rank = 0; rank < 5; ++rank) CHECK(results[rank].get() == expected[rank]);
}

TEST_CASE(
    "what a rank has sent before it went can still be received; who waits for it learns that it is gone") {
  auto group = make_loopback(2, Protocol::rendezvous);
  auto part = std::async(std::launch::async, [&] { return group.endpoints[0]->split(0, 0); });
  auto other = group.endpoints[1]->split(0, 0);
  auto first = part.get();
  int value = 0;
  const int sent = 3;
  other->send(0, {.sequence = 1}, nullptr, &sent, 4);
  const Ticket waiting = first->receive(1, {}, nullptr, &value, 4);
  abort_loopback(*group.hub, 1, "rank 1 is gone: it threw");
  CHECK_THROWS_WITH(first->test(waiting), ContainsSubstring("rank 1 is gone"));
  CHECK(first->test(first->receive(1, {.sequence = 1}, nullptr, &value, 4)));
  CHECK(value == 3);
  CHECK_THROWS_AS(group.endpoints[0]->send(1, {}, nullptr, &value, 4), PeerLostError);
}
