#include <cstring>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "engine/messages.hpp"
#include "exchange/operation.hpp"

namespace tutti::exchange {
namespace {

using engine::Turn;

/// Numbers of bytes, one for each run of the bucket: the first message, since encodings differ in length.
using Lengths = std::vector<std::uint64_t>;

struct Contributions {
  std::vector<Lengths> lengths;  ///< by rank
  std::vector<std::vector<std::byte>> bytes;
};

class GatheringOperation final : public CodecOperation {
 public:
  GatheringOperation(const CodedRequest& request, engine::Lookout& lookout, std::uint32_t sequence,
                     std::string label, std::size_t longest)
      : CodecOperation(request, lookout, sequence, std::move(label)),
        longest_(longest),
        all_(std::make_shared<Contributions>()) {
    all_->lengths.resize(static_cast<std::size_t>(ranks_));
    all_->bytes.resize(static_cast<std::size_t>(ranks_));
  }

  std::string describe() const override {
    return label_ + (known_ ? ": waits for the gradients of other ranks" : ": waits for other ranks");
  }

 private:
  Turn step() override {
    if (!lengths_) {
      encode();
      exchange_lengths();
      return Turn::moved;
    }
    // Both, every time: payloads are on their way while lengths are still missing.
    bool moved = lengths_->advance();
    if (payloads_->advance()) moved = true;
    if (moved) note_moved();
    if (!known_ && lengths_->done()) {
      receive_payloads();
      return Turn::moved;
    }
    if (!known_ || !payloads_->done()) return moved ? Turn::moved : Turn::idle;
    install();
    return Turn::done;
  }

  void encode() {
    Lengths& lengths = all_->lengths[static_cast<std::size_t>(rank_)];
    std::vector<std::byte>& bytes = all_->bytes[static_cast<std::size_t>(rank_)];
    std::size_t most = 0;
    for (const Run& run : request_.runs) most += request_.codec->max_bytes(run.count);
    bytes.resize(most);
    std::size_t used = 0;
    for (const Run& run : request_.runs) {
      const std::size_t size = request_.codec->encode(piece_of(run, rank_), values(run), state(run).local,
                                                      std::span(bytes).subspan(used));
      lengths.push_back(size);
      used += size;
    }
    bytes.resize(used);
  }

  /// What this rank sends needs nobody's answer: it follows at once.
  void exchange_lengths() {
    lengths_.emplace(lookout_, sequence_, std::uint8_t{0}, longest_);
    payloads_.emplace(lookout_, sequence_, std::uint8_t{1}, longest_);
    for (auto* messages : {&*lengths_, &*payloads_}) messages->keep(all_);
    const auto own = static_cast<std::size_t>(rank_);
    for (Rank i = 1; i < ranks_; ++i) {
      const Rank peer = (rank_ + i) % ranks_;
      Lengths& lengths = all_->lengths[static_cast<std::size_t>(peer)];
      lengths.resize(request_.runs.size());
      lengths_->receive(peer, std::as_writable_bytes(std::span(lengths)));
      lengths_->send(peer, std::as_bytes(std::span(all_->lengths[own])));
      payloads_->send(peer, all_->bytes[own]);
    }
  }

  void receive_payloads() {
    known_ = true;
    for (Rank i = 1; i < ranks_; ++i) {
      const Rank peer = (rank_ + i) % ranks_;
      const Lengths& lengths = all_->lengths[static_cast<std::size_t>(peer)];
      std::size_t size = 0;
      for (std::size_t r = 0; r < lengths.size(); ++r) {
        const std::size_t most = request_.codec->max_bytes(request_.runs[r].count);
        if (lengths[r] > most)
          base::fail<MismatchError>(
              "{} says that its encoding of {} elements has {} bytes, where at most {} are possible; do all "
              "ranks run the same program?",
              lookout_.transport().describe(peer), request_.runs[r].count, lengths[r], most);
        size += lengths[r];
      }
      auto& bytes = all_->bytes[static_cast<std::size_t>(peer)];
      bytes.resize(size);
      payloads_->receive(peer, bytes);
    }
  }

  /// A run at a time, which stays in the caches, from all ranks in their order: the same bits everywhere.
  void install() {
    std::vector<std::size_t> at(static_cast<std::size_t>(ranks_));
    for (std::size_t r = 0; r < request_.runs.size(); ++r) {
      const Run& run = request_.runs[r];
      for (Rank from = 0; from < ranks_; ++from) {
        const auto f = static_cast<std::size_t>(from);
        const std::size_t size = all_->lengths[f][r];
        const auto part = std::span<const std::byte>(all_->bytes[f]).subspan(at[f], size);
        at[f] += size;
        if (from == 0)
          request_.codec->decode(piece_of(run, from), part, values(run));
        else
          request_.codec->decode_add(piece_of(run, from), part, values(run));
      }
      divide(run);
    }
    lengths_.reset();
    payloads_.reset();
  }

  std::size_t longest_;
  bool known_ = false;  ///< all ranks' lengths have come
  std::shared_ptr<Contributions> all_;
  std::optional<engine::PeerMessages> lengths_;
  std::optional<engine::PeerMessages> payloads_;
};

}  // namespace

std::unique_ptr<engine::Operation> make_by_gathering(const CodedRequest& request, engine::Lookout& lookout,
                                                     std::uint32_t sequence, std::string label,
                                                     std::size_t longest) {
  return std::make_unique<GatheringOperation>(request, lookout, sequence, std::move(label), longest);
}

}  // namespace tutti::exchange
