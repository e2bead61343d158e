#include "transport/faulty.hpp"

#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace tutti::transport {
namespace {

class Faulty final : public Transport {
 public:
  Faulty(std::unique_ptr<Transport> below, FaultPlan plan, std::uint64_t* calls)
      : below_(std::move(below)),
        plan_(plan),
        calls_(calls),
        random_(plan.seed, static_cast<std::uint64_t>(below_->rank())) {}

  std::string_view name() const override { return "faulty"; }

  Rank rank() const override { return below_->rank(); }

  Rank size() const override { return below_->size(); }

  Ticket send(Rank peer, Tag tag, const Signature* opening, const void* data, std::size_t bytes) override {
    count(peer);
    return delayed(below_->send(peer, tag, opening, data, bytes));
  }

  Ticket receive(Rank peer, Tag tag, const Signature* opening, void* data, std::size_t bytes) override {
    count(peer);
    return delayed(below_->receive(peer, tag, opening, data, bytes));
  }

  Traffic traffic() const override { return below_->traffic(); }

  bool test(Ticket ticket) override {
    count(rank());
    auto& turns = turns_[ticket];
    if (turns > 0) {
      --turns;
      return false;
    }
    if (!below_->test(ticket)) return false;
    turns_.erase(ticket);
    return true;
  }

  bool cancel(Ticket ticket) noexcept override {
    turns_.erase(ticket);
    return below_->cancel(ticket);
  }

  void tell_all(const Notice& notice) noexcept override { below_->tell_all(notice); }

  std::optional<Notice> heard() override { return below_->heard(); }

  std::unique_ptr<Transport> split(int color, int key) override {
    return make_faulty(below_->split(color, key), plan_, calls_);
  }

  std::string describe(Rank peer) const override { return below_->describe(peer); }

 private:
  void count(Rank peer) {
    if (calls_ != nullptr) ++*calls_;
    if (++seen_ == plan_.fail_at)
      base::fail<PeerLostError>("{} is gone (injected at call {})", describe(peer), seen_);
  }

  Ticket delayed(Ticket ticket) {
    turns_[ticket] =
        plan_.delay_turns == 0 ? 0 : static_cast<std::uint32_t>(random_.below(plan_.delay_turns + 1));
    return ticket;
  }

  std::unique_ptr<Transport> below_;
  FaultPlan plan_;
  std::uint64_t* calls_;
  base::Random random_;
  std::uint64_t seen_ = 0;
  std::unordered_map<Ticket, std::uint32_t> turns_;
};

}  // namespace

std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> below, FaultPlan plan,
                                       std::uint64_t* calls) {
  return std::make_unique<Faulty>(std::move(below), plan, calls);
}

}  // namespace tutti::transport
