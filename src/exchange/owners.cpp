#include <optional>

#include "engine/messages.hpp"
#include "exchange/operation.hpp"

namespace tutti::exchange {
namespace {

using engine::Turn;

class OwnersOperation final : public CodecOperation {
 public:
  OwnersOperation(const CodedRequest& request, engine::Lookout& lookout, std::uint32_t sequence,
                  std::string label, std::size_t longest)
      : CodecOperation(request, lookout, sequence, std::move(label)),
        longest_(longest),
        sent_(std::make_shared<Payloads>()),
        received_(std::make_shared<Payloads>()) {}

  std::string describe() const override {
    return label_ +
           (spreading_ ? ": waits for the sums of other ranks" : ": waits for slices of other ranks");
  }

 private:
  Turn step() override {
    if (!messages_) {
      encode_for_owners();
      return Turn::moved;
    }
    const bool moved = messages_->advance();
    if (moved) note_moved();
    if (!messages_->done()) return moved ? Turn::moved : Turn::idle;
    if (!spreading_) {
      add_up();
      return Turn::moved;
    }
    install();
    return Turn::done;
  }

  const std::vector<Run>& slice(Rank rank) const {
    return (*request_.slices)[static_cast<std::size_t>(rank)];
  }

  std::size_t bytes_of(Rank owner) const {
    std::size_t bytes = 0;
    for (const Run& run : slice(owner)) bytes += request_.codec->max_bytes(run.count);
    return bytes;
  }

  std::vector<std::byte> encode(Rank owner, bool as_owner) const {
    std::vector<std::byte> bytes(bytes_of(owner));
    std::span<std::byte> rest(bytes);
    for (const Run& run : slice(owner)) {
      CodedState& both = state(run);
      request_.codec->encode(piece_of(run, as_owner ? ranks_ : rank_), values(run),
                             as_owner ? both.owner : both.local, rest);
      rest = rest.subspan(request_.codec->max_bytes(run.count));
    }
    return bytes;
  }

  template <class Use>
  void decode(Rank owner, std::span<const std::byte> bytes, const Use& use) const {
    for (const Run& run : slice(owner)) {
      const std::size_t size = request_.codec->max_bytes(run.count);
      use(run, bytes.first(size));
      bytes = bytes.subspan(size);
    }
  }

  void begin_round(std::uint8_t strand) {
    messages_.emplace(lookout_, sequence_, strand, longest_);
    messages_->keep(sent_);
    messages_->keep(received_);
  }

  void encode_for_owners() {
    sent_->of.resize(static_cast<std::size_t>(ranks_));
    received_->of.resize(static_cast<std::size_t>(ranks_));
    begin_round(0);
    for (Rank peer = 0; peer < ranks_; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      if (peer != rank_) {
        received_->of[p].resize(bytes_of(rank_));
        messages_->receive(peer, received_->of[p]);
      }
    }
    // Each begins with the next rank, so that not all send to the same one.
    for (Rank i = 1; i <= ranks_; ++i) {
      const Rank owner = (rank_ + i) % ranks_;
      auto& bytes = sent_->of[static_cast<std::size_t>(owner)];
      bytes = encode(owner, false);
      if (owner != rank_) messages_->send(owner, bytes);
    }
  }

  /// What this rank itself would have sent goes through the codec as well.
  void add_up() {
    for (Rank from = 0; from < ranks_; ++from) {
      const auto& bytes = (from == rank_ ? sent_ : received_)->of[static_cast<std::size_t>(from)];
      decode(rank_, bytes, [&](const Run& run, std::span<const std::byte> part) {
        if (from == 0)
          request_.codec->decode(piece_of(run, from), part, values(run));
        else
          request_.codec->decode_add(piece_of(run, from), part, values(run));
      });
    }
    for (const Run& run : slice(rank_)) divide(run);
    messages_.reset();
    auto mine = encode(rank_, true);
    spread(std::move(mine));
  }

  void spread(std::vector<std::byte> mine) {
    spreading_ = true;
    sent_ = std::make_shared<Payloads>();
    received_ = std::make_shared<Payloads>();
    sent_->of.push_back(std::move(mine));
    received_->of.resize(static_cast<std::size_t>(ranks_));
    begin_round(1);
    for (Rank i = 1; i < ranks_; ++i) {
      const Rank peer = (rank_ + i) % ranks_;
      auto& bytes = received_->of[static_cast<std::size_t>(peer)];
      bytes.resize(bytes_of(peer));
      messages_->receive(peer, bytes);
      messages_->send(peer, sent_->of[0]);
    }
  }

  void install() {
    for (Rank owner = 0; owner < ranks_; ++owner) {
      const auto& bytes = owner == rank_ ? sent_->of[0] : received_->of[static_cast<std::size_t>(owner)];
      decode(owner, bytes, [&](const Run& run, std::span<const std::byte> part) {
        request_.codec->decode(piece_of(run, ranks_), part, values(run));
      });
    }
    messages_.reset();
  }

  std::size_t longest_;
  bool spreading_ = false;
  std::shared_ptr<Payloads> sent_;
  std::shared_ptr<Payloads> received_;
  std::optional<engine::PeerMessages> messages_;
};

}  // namespace

std::unique_ptr<engine::Operation> make_by_owners(const CodedRequest& request, engine::Lookout& lookout,
                                                  std::uint32_t sequence, std::string label,
                                                  std::size_t longest) {
  return std::make_unique<OwnersOperation>(request, lookout, sequence, std::move(label), longest);
}

}  // namespace tutti::exchange
