#include "transport/shaped.hpp"

#include <vector>

#include "support/catch.hpp"
#include "transport/faulty.hpp"
#include "transport/loopback.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::transport;

namespace {

/// Stands still until it is told to go on.
class ManualClock final : public base::Clock {
 public:
  Seconds now() const override { return now_; }

  void set(double seconds) { now_ = Seconds(seconds); }

 private:
  Seconds now_{100};
};

/// Two ranks, each behind a link, and messages from the first to the second.
class Pair {
 public:
  explicit Pair(const char* shape) {
    auto group = make_loopback(2, Protocol::eager);
    for (auto& endpoint : group.endpoints)
      ranks_.push_back(make_shaped(std::move(endpoint), base::parse_link(shape, "link"), clock_));
    hub_ = group.hub;
  }

  void send(std::size_t bytes, double at) {
    clock_->set(100 + at);
    const Tag tag{.sequence = count_ / 64, .segment = count_ % 64};
    ++count_;
    sent_.push_back(ranks_[0]->send(1, tag, nullptr, buffer_.data(), bytes));
    received_.push_back(ranks_[1]->receive(0, tag, nullptr, target_.data(), bytes));
  }

  /// How many messages have arrived by then.
  std::size_t arrived(double at) {
    clock_->set(100 + at);
    std::erase_if(sent_, [&](Ticket ticket) { return ranks_[0]->test(ticket); });
    std::erase_if(received_, [&](Ticket ticket) { return ranks_[1]->test(ticket); });
    CHECK(sent_.size() == received_.size());
    return count_ - received_.size();
  }

  Transport& operator[](std::size_t rank) { return *ranks_[rank]; }

 private:
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::shared_ptr<LoopbackHub> hub_;
  std::vector<std::unique_ptr<Transport>> ranks_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 20);
  std::vector<std::byte> target_ = std::vector<std::byte>(1 << 20);
  std::vector<Ticket> sent_;
  std::vector<Ticket> received_;
  std::uint32_t count_ = 0;
};

}  // namespace

TEST_CASE("what a message is on the wire") {
  CHECK(frame_bytes(0) == 66);
  CHECK(frame_bytes(1) == 67);
  CHECK(frame_bytes(1448) == 1514);
  CHECK(frame_bytes(1449) == 1581);
  CHECK(frame_bytes(1448 * 1000) == 1514000);
}

TEST_CASE("messages leave one after the other at the link's rate, and arrive a delay later") {
  Pair pair("12112kbit,5ms");  // 1514 bytes in a millisecond
  pair.send(1448, 0);
  pair.send(2 * 1448, 0);
  CHECK(pair.arrived(0.0059) == 0);
  CHECK(pair.arrived(0.0061) == 1);
  CHECK(pair.arrived(0.0079) == 1);
  CHECK(pair.arrived(0.0081) == 2);
  pair.send(1448, 1.0);  // a pause has not saved up anything
  CHECK(pair.arrived(1.0059) == 2);
  CHECK(pair.arrived(1.0061) == 3);
}

TEST_CASE("after a pause a burst passes at once, and no more than that") {
  Pair pair("12112kbit,burst=3028");
  for (int i = 0; i < 4; ++i) pair.send(1448, 0);
  CHECK(pair.arrived(0.0001) == 2);
  CHECK(pair.arrived(0.0009) == 2);
  CHECK(pair.arrived(0.0011) == 3);
  CHECK(pair.arrived(0.0021) == 4);
  for (int i = 0; i < 4; ++i) pair.send(1448, 0.0031);  // one millisecond has saved up one frame
  CHECK(pair.arrived(0.0032) == 5);
}

TEST_CASE("jitter comes on top, within its limit, the same from the same seed, and nothing overtakes") {
  const auto arrivals = [](const char* shape) {
    Pair pair(shape);
    std::vector<int> at;
    for (std::uint32_t i = 0; i < 20; ++i) {
      pair.send(1, i);
      int tick = 1;
      while (pair.arrived(i + tick * 1e-4) != i + 1) ++tick;
      at.push_back(tick);
    }
    return at;
  };
  const auto first = arrivals("1gbit,1ms,jitter=2ms,seed=7");
  CHECK(*std::ranges::min_element(first) >= 10);
  CHECK(*std::ranges::max_element(first) <= 31);
  CHECK(*std::ranges::max_element(first) - *std::ranges::min_element(first) >= 10);
  CHECK(arrivals("1gbit,1ms,jitter=2ms,seed=7") == first);
  CHECK(arrivals("1gbit,1ms,jitter=2ms,seed=8") != first);
  Pair pair("1gbit,jitter=5ms");
  std::size_t before = 0;
  for (int i = 0; i < 20; ++i) pair.send(1, 0);
  for (int tick = 0; tick <= 60; ++tick) {  // arrived() compares sends and receives each time: in order
    const std::size_t now = pair.arrived(tick * 1e-4);
    CHECK(now >= before);
    before = now;
  }
  CHECK(before == 20);
}

TEST_CASE("communicators of a rank share its link, messages to itself do not take it") {
  auto group = make_loopback(1, Protocol::eager);
  const auto clock = std::make_shared<ManualClock>();
  const auto alone = make_shaped(std::move(group.endpoints[0]), base::parse_link("1kbit,1s", "link"), clock);
  int value = 7;
  int received = 0;
  const Ticket send = alone->send(0, {}, nullptr, &value, 4);
  const Ticket receive = alone->receive(0, {}, nullptr, &received, 4);
  CHECK(alone->test(receive));
  CHECK(alone->test(send));
  CHECK(received == 7);
  CHECK(alone->traffic().bytes == 4);
  CHECK(alone->native() == nullptr);
}

TEST_CASE("what was given up before it left does not leave, and what could not be sent is told") {
  Pair pair("12112kbit");
  std::vector<std::byte> data(2896);
  const Ticket first = pair[0].send(1, {}, nullptr, data.data(), 1448);
  CHECK(pair[0].cancel(first));  // its buffer is free
  pair.send(1448, 0);            // under the same tag: arrives as the first
  CHECK(pair.arrived(0.0021) == 1);

  auto group = make_loopback(2, Protocol::eager);
  const auto clock = std::make_shared<ManualClock>();
  auto faulty = make_faulty(std::move(group.endpoints[0]), {.fail_at = 1});
  const auto shaped = make_shaped(std::move(faulty), base::parse_link("1mbit", "link"), clock);
  const Ticket lost = shaped->send(1, {}, nullptr, data.data(), 4);
  CHECK_FALSE(shaped->test(lost));
  clock->set(101);
  CHECK_THROWS_AS(shaped->test(lost), PeerLostError);
  CHECK(shaped->cancel(lost));
}
