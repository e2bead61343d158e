#include "transport/shaped.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/random.hpp"
#include "base/slots.hpp"

namespace tutti::transport {
namespace {

/// A rank's link to the others, a token bucket. All communicators of a rank share it, under the token of
/// their progress.
class Link {
 public:
  Link(const base::LinkShape& shape, std::uint64_t rank) : shape_(shape), random_(shape.seed, rank) {}

  /// When a message that is sent now arrives.
  Seconds admit(std::size_t bytes, Seconds now) {
    const Seconds full(static_cast<double>(shape_.burst) / shape_.bytes_per_second);
    const Seconds taken(static_cast<double>(frame_bytes(bytes)) / shape_.bytes_per_second);
    free_ = std::max(free_, now - full) + taken;
    arrived_ = std::max(arrived_, std::max(now, free_) + shape_.delay + shape_.jitter * random_.unit());
    return arrived_;
  }

 private:
  base::LinkShape shape_;
  base::Random random_;
  Seconds free_{-1e9};     ///< when the bucket has paid for all that was sent
  Seconds arrived_{-1e9};  ///< when the last message arrives: none overtakes it
};

class Shaped final : public Transport {
 public:
  Shaped(std::unique_ptr<Transport> below, std::shared_ptr<Link> link,
         std::shared_ptr<const base::Clock> clock)
      : below_(std::move(below)), link_(std::move(link)), clock_(std::move(clock)) {}

  Shaped(const Shaped&) = delete;
  Shaped& operator=(const Shaped&) = delete;

  ~Shaped() override {
    // The library below may touch it for longer than this lives.
    for (auto& memory : take_parked()) below_->park(std::move(memory));
  }

  std::string_view name() const override { return "shaped"; }

  Rank rank() const override { return below_->rank(); }

  Rank size() const override { return below_->size(); }

  Ticket send(Rank peer, Tag tag, const Signature* opening, const void* data, std::size_t bytes) override {
    note_sent(bytes);
    Message message{.peer = peer, .tag = tag, .data = data, .bytes = bytes};
    if (opening != nullptr) message.opening = *opening;
    if (peer == rank()) {
      hand_down(message);
      return messages_.take(std::move(message));
    }
    message.due = link_->admit(bytes, clock_->now());
    const Ticket ticket = messages_.take(std::move(message));
    queue_.push_back(ticket);
    return ticket;
  }

  Ticket receive(Rank peer, Tag tag, const Signature* opening, void* data, std::size_t bytes) override {
    const Ticket below = below_->receive(peer, tag, opening, data, bytes);
    return messages_.take({.stage = Stage::below, .below = below});
  }

  bool test(Ticket ticket) override {
    release_due();
    const Message& message = messages_[ticket];
    if (message.stage != Stage::below || !below_->test(message.below)) return false;
    messages_.release(ticket);
    return true;
  }

  bool cancel(Ticket ticket) noexcept override {
    const Message& message = messages_[ticket];
    const bool free = message.stage != Stage::below || below_->cancel(message.below);
    if (message.stage == Stage::queued) std::erase(queue_, ticket);
    messages_.release(ticket);
    return free;
  }

  void tell_all(const Notice& notice) noexcept override { below_->tell_all(notice); }

  std::optional<Notice> heard() override { return below_->heard(); }

  std::unique_ptr<Transport> split(int color, int key) override {
    return std::make_unique<Shaped>(below_->split(color, key), link_, clock_);
  }

  std::string describe(Rank peer) const override { return below_->describe(peer); }

 private:
  enum class Stage : std::uint8_t { queued, below, lost };

  struct Message {
    Stage stage = Stage::queued;
    Ticket below = 0;
    Seconds due{0};
    Rank peer = -1;
    Tag tag = {};
    std::optional<Signature> opening = {};
    const void* data = nullptr;
    std::size_t bytes = 0;
  };

  /// If the transport below throws, the message is lost, and cancel() takes it as that.
  void hand_down(Message& message) {
    message.stage = Stage::lost;
    const Signature* opening = message.opening ? &*message.opening : nullptr;
    message.below = below_->send(message.peer, message.tag, opening, message.data, message.bytes);
    message.stage = Stage::below;
  }

  void release_due() {
    if (queue_.empty()) return;
    const Seconds now = clock_->now();
    while (!queue_.empty() && messages_[queue_.front()].due <= now) {
      Message& message = messages_[queue_.front()];
      queue_.pop_front();
      hand_down(message);
    }
  }

  std::unique_ptr<Transport> below_;
  std::shared_ptr<Link> link_;
  std::shared_ptr<const base::Clock> clock_;
  base::Slots<Message> messages_;
  std::deque<Ticket> queue_;  ///< sends that have not arrived, in order
};

}  // namespace

std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> below, const base::LinkShape& shape,
                                       std::shared_ptr<const base::Clock> clock) {
  auto link = std::make_shared<Link>(shape, static_cast<std::uint64_t>(below->rank()));
  return std::make_unique<Shaped>(std::move(below), std::move(link), std::move(clock));
}

}  // namespace tutti::transport
