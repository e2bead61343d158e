#include "transport/loopback.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/slots.hpp"

namespace tutti::transport {
namespace {

struct Message {
  Rank from = 0;
  Rank to = 0;
  bool is_send = false;
  Tag tag;
  const void* source = nullptr;
  void* target = nullptr;
  std::size_t bytes = 0;
  std::vector<std::byte> eager;
  bool done = false;
  std::optional<Signature> opening;
  std::string mismatch;
  std::optional<Signature> foreign;       ///< of the other end, if it is another operation
  std::shared_ptr<Message> partner = {};  ///< rendezvous: matched, but not yet looked at by the receiver
};

using Shared = std::shared_ptr<Message>;

}  // namespace

class LoopbackHub {
 public:
  /// `names`: the numbers of the members in the first hub, by which they are reported gone.
  LoopbackHub(std::vector<Rank> names, Protocol protocol)
      : ranks_(static_cast<Rank>(names.size())),
        protocol_(protocol),
        names_(std::move(names)),
        gone_(names_.size()),
        notices_(names_.size()) {}

  Rank ranks() const { return ranks_; }

  void post(const Shared& message) {
    const std::scoped_lock lock(mutex_);
    const bool is_send = message->is_send;
    auto& others = is_send ? receives_ : sends_;
    const auto match = std::find_if(others.begin(), others.end(), [&](const Shared& other) {
      return other->from == message->from && other->to == message->to && other->tag == message->tag;
    });
    if (match != others.end()) {
      const Shared other = *match;
      others.erase(match);
      if (protocol_ == Protocol::rendezvous) {
        message->partner = other;
        other->partner = message;
      } else {
        is_send ? deliver(*message, *other) : deliver(*other, *message);
      }
      return;
    }
    check_alive(is_send ? message->to : message->from);
    if (is_send && protocol_ == Protocol::eager) {
      const auto* bytes = static_cast<const std::byte*>(message->source);
      message->eager.assign(bytes, bytes + message->bytes);
      message->source = message->eager.data();
      message->done = true;
    }
    (is_send ? sends_ : receives_).push_back(message);
  }

  /// Throws if the other end is gone or calls something else.
  bool done(Message& message) {
    const std::scoped_lock lock(mutex_);
    const Rank other = message.is_send ? message.to : message.from;
    // As where the receiver has to look at what comes before it lets the bytes come: its test moves them.
    if (!message.is_send && message.partner) {
      const Shared send = std::exchange(message.partner, nullptr);
      send->partner = nullptr;
      deliver(*send, message);
    }
    if (!message.done) check_alive(other);
    if (message.foreign) throw ForeignOperation(other, *message.foreign, message.mismatch);
    if (!message.mismatch.empty()) throw MismatchError(message.mismatch);
    return message.done;
  }

  void tell_all(const Notice& notice) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < notices_.size(); ++i) {
      if (std::cmp_not_equal(i, notice.from)) notices_[i].push_back(notice);
    }
  }

  std::optional<Notice> heard(Rank rank) {
    const std::scoped_lock lock(mutex_);
    auto& waiting = notices_[static_cast<std::size_t>(rank)];
    if (waiting.empty()) return std::nullopt;
    std::optional<Notice> first(std::move(waiting.front()));
    waiting.pop_front();
    return first;
  }

  void withdraw(const Shared& message) {
    const std::scoped_lock lock(mutex_);
    sends_.remove(message);
    receives_.remove(message);
    if (const Shared other = std::exchange(message->partner, nullptr)) {
      other->partner = nullptr;
      (other->is_send ? sends_ : receives_).push_front(other);
    }
  }

  void abort(Rank name, const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) gone_[i] = reason;
    }
    for (const auto& child : children_) {
      if (const auto alive = child.lock()) alive->abort(name, reason);
    }
    changed_.notify_all();
  }

  /// One rank's part of a split; blocks until all have come. Returns the new hub and this rank's number in
  /// it.
  std::pair<std::shared_ptr<LoopbackHub>, Rank> split(Rank rank, std::uint32_t round, int color, int key) {
    std::unique_lock lock(mutex_);
    Split& split = splits_[round];
    split.members.emplace_back(color, key, rank);
    if (std::cmp_equal(split.members.size(), ranks_)) {
      std::sort(split.members.begin(), split.members.end());
      std::map<int, std::vector<Rank>> groups;
      for (const auto& [member_color, member_key, member] : split.members) {
        groups[member_color].push_back(names_[static_cast<std::size_t>(member)]);
      }
      for (auto& [group, names] : groups) {
        split.hubs[group] = std::make_shared<LoopbackHub>(std::move(names), protocol_);
        children_.push_back(split.hubs[group]);
      }
      split.complete = true;
      changed_.notify_all();
    }
    const auto somebody_gone = [this] {
      return std::ranges::find_if(gone_, [](const auto& reason) { return !reason.empty(); });
    };
    changed_.wait(lock, [&] { return split.complete || somebody_gone() != gone_.end(); });
    if (!split.complete) throw PeerLostError(*somebody_gone());
    Rank position = 0;
    for (const auto& [member_color, member_key, member] : split.members) {
      if (member_color != color) continue;
      if (member == rank) break;
      ++position;
    }
    auto hub = split.hubs[color];
    if (++split.left == ranks_) splits_.erase(round);
    return {std::move(hub), position};
  }

 private:
  struct Split {
    std::vector<std::tuple<int, int, Rank>> members;
    std::map<int, std::shared_ptr<LoopbackHub>> hubs;
    Rank left = 0;
    bool complete = false;
  };

  void check_alive(Rank peer) const {
    if (const auto& reason = gone_[static_cast<std::size_t>(peer)]; !reason.empty())
      throw PeerLostError(reason);
  }

  static void deliver(Message& send, Message& receive) {
    if (send.opening != receive.opening && send.opening && receive.opening) {
      send.foreign = receive.opening;
      receive.foreign = send.opening;
      send.mismatch = receive.mismatch =
          fmt::format("ranks {} and {} called different operations", send.from, send.to);
    } else if (send.bytes != receive.bytes) {
      const std::string text = fmt::format(
          "rank {} sent {} bytes where rank {} expected {}: the ranks called different operations", send.from,
          send.bytes, send.to, receive.bytes);
      send.mismatch = receive.mismatch = text;
    } else if (send.bytes > 0) {
      std::memcpy(receive.target, send.source, send.bytes);
    }
    send.done = receive.done = true;
  }

  const Rank ranks_;
  const Protocol protocol_;
  const std::vector<Rank> names_;
  std::vector<std::string> gone_;  ///< why, for each member; empty: it is there
  std::vector<std::deque<Notice>> notices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Shared> sends_;
  std::list<Shared> receives_;
  std::map<std::uint32_t, Split> splits_;
  std::vector<std::weak_ptr<LoopbackHub>> children_;
};

namespace {

class Endpoint final : public Transport {
 public:
  Endpoint(std::shared_ptr<LoopbackHub> hub, Rank rank) : hub_(std::move(hub)), rank_(rank) {}

  std::string_view name() const override { return "loopback"; }

  Rank rank() const override { return rank_; }

  Rank size() const override { return hub_->ranks(); }

  Ticket send(Rank peer, Tag tag, const Signature* opening, const void* data, std::size_t bytes) override {
    note_sent(bytes);
    Message message{.from = rank_, .to = peer, .is_send = true, .tag = tag, .source = data, .bytes = bytes};
    if (opening != nullptr) message.opening = *opening;
    return post(std::move(message));
  }

  Ticket receive(Rank peer, Tag tag, const Signature* opening, void* data, std::size_t bytes) override {
    Message message{.from = peer, .to = rank_, .tag = tag, .target = data, .bytes = bytes};
    if (opening != nullptr) message.opening = *opening;
    return post(std::move(message));
  }

  bool test(Ticket ticket) override {
    const bool done = hub_->done(*slots_[ticket]);
    if (done) slots_.release(ticket);
    return done;
  }

  bool cancel(Ticket ticket) noexcept override {
    hub_->withdraw(slots_[ticket]);
    slots_.release(ticket);
    return true;
  }

  void tell_all(const Notice& notice) noexcept override {
    Notice mine = notice;
    mine.from = rank_;
    hub_->tell_all(mine);
  }

  std::optional<Notice> heard() override { return hub_->heard(rank_); }

  std::unique_ptr<Transport> split(int color, int key) override {
    auto [hub, position] = hub_->split(rank_, splits_++, color, key);
    return std::make_unique<Endpoint>(std::move(hub), position);
  }

  std::string describe(Rank peer) const override { return fmt::format("rank {} (in this process)", peer); }

 private:
  Ticket post(Message&& message) {
    auto shared = std::make_shared<Message>(std::move(message));
    hub_->post(shared);
    return slots_.take(std::move(shared));
  }

  std::shared_ptr<LoopbackHub> hub_;
  Rank rank_;
  base::Slots<Shared> slots_;
  std::uint32_t splits_ = 0;
};

}  // namespace

Loopback make_loopback(Rank ranks, Protocol protocol) {
  base::require(ranks >= 1, "a group needs at least one rank, not {}", ranks);
  std::vector<Rank> names(static_cast<std::size_t>(ranks));
  std::iota(names.begin(), names.end(), 0);
  Loopback group{std::make_shared<LoopbackHub>(std::move(names), protocol), {}};
  for (Rank rank = 0; rank < ranks; ++rank)
    group.endpoints.push_back(std::make_unique<Endpoint>(group.hub, rank));
  return group;
}

void abort_loopback(LoopbackHub& hub, Rank rank, const std::string& reason) {
  hub.abort(rank, reason);
}

}  // namespace tutti::transport
