#include "exchange/coded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "engine/messages.hpp"
#include "kernel/kernel.hpp"

namespace tutti::exchange {

using engine::Turn;

namespace {

/// The end of slice `r` of `ranks`, in elements of the bucket: the first border of a block, or of a
/// parameter, that is not before an equal part.
std::size_t border(std::span<const Run> whole, std::size_t size, Rank r, Rank ranks, std::size_t block) {
  const std::size_t wanted =
      whole.front().at + size * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks);
  for (const Run& run : whole) {
    if (wanted > run.at + run.count) continue;
    const std::size_t inside = wanted <= run.at ? 0 : wanted - run.at;
    return run.at + std::min<std::size_t>((inside + block - 1) / block * block, run.count);
  }
  return whole.front().at + size;
}

}  // namespace

std::vector<std::vector<Run>> slices_of(std::span<const Run> whole, Rank ranks, std::size_t block) {
  std::vector<std::vector<Run>> slices(static_cast<std::size_t>(ranks));
  if (whole.empty()) return slices;
  const std::size_t begin = whole.front().at;
  const std::size_t size = whole.back().at + whole.back().count - begin;
  for (Rank r = 0; r < ranks; ++r) {
    const std::size_t first = r == 0 ? begin : border(whole, size, r, ranks, block);
    const std::size_t last = r + 1 == ranks ? begin + size : border(whole, size, r + 1, ranks, block);
    for (const Run& run : whole) {
      const std::size_t from = std::max(first, run.at);
      const std::size_t to = std::min<std::size_t>(last, run.at + run.count);
      if (from >= to) continue;
      slices[static_cast<std::size_t>(r)].push_back({.parameter = run.parameter,
                                                     .offset = run.offset + (from - run.at),
                                                     .count = to - from,
                                                     .size = run.size,
                                                     .at = from});
    }
  }
  return slices;
}

namespace {

/// Encodings of one slice, by rank, in memory that outlives the operation if it must.
struct Payloads {
  std::vector<std::vector<std::byte>> of;
};

class CodedOperation final : public engine::Operation {
 public:
  CodedOperation(const CodedRequest& request, engine::Lookout& lookout, std::uint32_t sequence,
                 std::size_t longest, std::string label)
      : request_(request),
        lookout_(lookout),
        sequence_(sequence),
        longest_(longest),
        label_(std::move(label)),
        rank_(lookout.transport().rank()),
        ranks_(lookout.transport().size()),
        sent_(std::make_shared<Payloads>()),
        received_(std::make_shared<Payloads>()) {}

  Turn advance() override {
    try {
      if (!messages_) {
        encode_for_owners();
        return Turn::moved;
      }
      const bool moved = messages_->advance();
      if (moved) next_inquiry_ = engine::Lookout::first_inquiry;
      if (!messages_->done()) return moved ? Turn::moved : Turn::idle;
      if (!spreading_) {
        add_up();
        return Turn::moved;
      }
      install();
      return Turn::done;
    } catch (const std::exception& error) {
      lookout_.tell(engine::kind_of(error), sequence_, fmt::format("{}: {}", label_, error.what()));
      throw;
    }
  }

  std::string describe() const override {
    return fmt::format("{}: {}", label_,
                       spreading_ ? "waits for the sums of other ranks" : "waits for slices of other ranks");
  }

  void look_around(Seconds idle) override {
    lookout_.look(sequence_, idle, next_inquiry_, [this] { return describe(); });
  }

  void abandon(const std::string& reason) noexcept override {
    lookout_.tell(transport::Notice::Kind::timeout, sequence_, reason);
  }

 private:
  const std::vector<Run>& slice(Rank rank) const {
    return (*request_.slices)[static_cast<std::size_t>(rank)];
  }

  std::size_t bytes_of(Rank owner) const {
    std::size_t bytes = 0;
    for (const Run& run : slice(owner)) bytes += request_.codec->max_bytes(run.count);
    return bytes;
  }

  /// `rank` as the codec knows it: draws of owners differ from those of any sender, but do not depend on who
  /// the owner is, so that the bits do not depend on buckets.
  compress::Piece piece_of(const Run& run, Rank rank) const {
    return {.parameter = run.parameter,
            .offset = run.offset,
            .size = run.size,
            .step = request_.step,
            .seed = request_.seed,
            .rank = rank,
            .ranks = ranks_};
  }

  std::span<float> values(const Run& run) const { return request_.bucket.subspan(run.at, run.count); }

  compress::State& state(const Run& run, bool owner) const {
    CodedState& both = *request_.states[run.parameter];
    return owner ? both.owner : both.local;
  }

  std::vector<std::byte> encode(Rank owner, bool as_owner) const {
    std::vector<std::byte> bytes(bytes_of(owner));
    std::span<std::byte> rest(bytes);
    for (const Run& run : slice(owner)) {
      const Rank who = as_owner ? ranks_ : rank_;
      request_.codec->encode(piece_of(run, who), values(run), state(run, as_owner), rest);
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
    if (request_.op == Op::average) {
      for (const Run& run : slice(rank_)) {
        const auto x = values(run);
        kernel::convert(DType::f32, Op::average, {x.data(), DType::f32}, {x.data(), DType::f32}, x.size(),
                        static_cast<std::uint64_t>(ranks_));
      }
    }
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

  CodedRequest request_;
  engine::Lookout& lookout_;
  std::uint32_t sequence_;
  std::size_t longest_;
  std::string label_;
  Rank rank_;
  Rank ranks_;
  Seconds next_inquiry_ = engine::Lookout::first_inquiry;
  bool spreading_ = false;
  std::shared_ptr<Payloads> sent_;
  std::shared_ptr<Payloads> received_;
  std::optional<engine::PeerMessages> messages_;
};

}  // namespace

void hand_over(Communicator& communicator, const compress::Codec& codec, std::span<CodedState* const> states,
               std::span<const Run> mine) {
  if (!codec.feedback()) return;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == nullptr) continue;
    const std::span<float> residual = states[i]->owner.array(compress::residual_name);
    // Of each element one rank has something, the others nothing.
    communicator.allreduce(residual, Op::sum, {.name = "owner residuals"});
    std::vector<float> kept(residual.size());
    for (const Run& run : mine) {
      if (run.parameter != i) continue;
      std::copy_n(residual.begin() + static_cast<std::ptrdiff_t>(run.offset), run.count,
                  kept.begin() + static_cast<std::ptrdiff_t>(run.offset));
    }
    std::ranges::copy(kept, residual.begin());
  }
}

std::shared_ptr<engine::Pending> start_coded_allreduce(engine::CommunicatorState& communicator,
                                                       const CodedRequest& request) {
  base::require(request.codec->algebra() == compress::Algebra::reencodable,
                "a coded allreduce by slice owners needs a codec whose sums can be encoded again");
  // What ranks compare: the bucket and the codec's bytes; each message is compared by its length besides.
  const engine::Request call{.collective = schedule::Collective::allreduce,
                             .input = request.bucket.data(),
                             .output = request.bucket.data(),
                             .count = request.bucket.size(),
                             .type = DType::f32,
                             .op = request.op,
                             .name = "coded gradients",
                             .context = 1 + request.codec->max_bytes(request.bucket.size())};
  const std::size_t longest = communicator.runtime().options.message_bytes;
  return communicator.start(call, [&](engine::Lookout& lookout, std::uint32_t sequence, std::string label) {
    return std::make_unique<CodedOperation>(request, lookout, sequence, longest, std::move(label));
  });
}

}  // namespace tutti::exchange
