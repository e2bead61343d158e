#include "exchange/rows.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "engine/messages.hpp"
#include "exchange/operation.hpp"
#include "kernel/kernel.hpp"

namespace tutti::exchange {
namespace {

using engine::Turn;

/// What each rank has: how many rows, and then the rows.
struct Gathered {
  std::vector<std::uint64_t> counts;
  std::vector<RowSet> sets;  ///< of the others
  std::shared_ptr<const RowSet> mine;
};

class RowsOperation final : public ExchangeOperation {
 public:
  RowsOperation(const RowsRequest& request, engine::Lookout& lookout, std::uint32_t sequence,
                std::string label, std::size_t longest)
      : ExchangeOperation(lookout, sequence, std::move(label)),
        request_(request),
        longest_(longest),
        all_(std::make_shared<Gathered>()) {
    all_->counts.resize(static_cast<std::size_t>(ranks_));
    all_->sets.resize(static_cast<std::size_t>(ranks_));
    all_->mine = request.mine;
  }

  std::string describe() const override {
    return label_ + (known_ ? ": waits for the rows of other ranks" : ": waits for other ranks");
  }

 private:
  Turn step() override {
    if (!counts_) {
      send();
      return Turn::moved;
    }
    bool moved = false;
    for (auto* messages : {&*counts_, &*numbers_, &*values_}) {
      if (messages->advance()) moved = true;
    }
    if (moved) note_moved();
    if (!known_ && counts_->done()) {
      receive_rows();
      return Turn::moved;
    }
    if (!known_ || !numbers_->done() || !values_->done()) return moved ? Turn::moved : Turn::idle;
    add_up();
    return Turn::done;
  }

  /// What this rank has needs nobody's answer.
  void send() {
    std::uint8_t strand = 0;
    for (auto* messages : {&counts_, &numbers_, &values_}) {
      messages->emplace(lookout_, sequence_, strand++, longest_);
      (*messages)->keep(all_);
    }
    auto& own = all_->counts[static_cast<std::size_t>(rank_)];
    own = request_.mine->rows.size();
    for (Rank i = 1; i < ranks_; ++i) {
      const Rank peer = (rank_ + i) % ranks_;
      counts_->receive(peer,
                       std::as_writable_bytes(std::span(&all_->counts[static_cast<std::size_t>(peer)], 1)));
      counts_->send(peer, std::as_bytes(std::span(&own, 1)));
      if (own == 0) continue;
      numbers_->send(peer, std::as_bytes(std::span(request_.mine->rows)));
      values_->send(peer, std::as_bytes(std::span(request_.mine->values)));
    }
  }

  void receive_rows() {
    known_ = true;
    for (Rank i = 1; i < ranks_; ++i) {
      const Rank peer = (rank_ + i) % ranks_;
      const std::uint64_t count = all_->counts[static_cast<std::size_t>(peer)];
      if (count > request_.rows)
        base::fail<MismatchError>(
            "{} says that it has {} rows of a matrix of {}; do all ranks run the same "
            "program?",
            lookout_.transport().describe(peer), count, request_.rows);
      if (count == 0) continue;
      RowSet& set = all_->sets[static_cast<std::size_t>(peer)];
      set.rows.resize(count);
      set.values.resize(count * request_.width);
      numbers_->receive(peer, std::as_writable_bytes(std::span(set.rows)));
      values_->receive(peer, std::as_writable_bytes(std::span(set.values)));
    }
  }

  const RowSet& set_of(std::size_t rank) const {
    return rank == static_cast<std::size_t>(rank_) ? *request_.mine : all_->sets[rank];
  }

  /// Others' numbers are checked before they are used: merging relies on their order.
  void require_rows(std::size_t rank) const {
    const auto& rows = set_of(rank).rows;
    const bool ascending = std::ranges::adjacent_find(rows, std::greater_equal<>()) == rows.end();
    if (ascending && (rows.empty() || rows.back() < request_.rows)) return;
    base::fail<MismatchError>(
        "{} has sent numbers of rows that are not ascending numbers below {}; do all ranks run the same "
        "program?",
        lookout_.transport().describe(static_cast<Rank>(rank)), request_.rows);
  }

  /// A row at a time, from all ranks that have it.
  void add_up() {
    const auto ranks = static_cast<std::size_t>(ranks_);
    RowSet& result = *request_.result;
    result.rows.clear();
    std::uint64_t& sent = *request_.sent = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      require_rows(r);
      sent += set_of(r).rows.size();
      result.rows.insert(result.rows.end(), set_of(r).rows.begin(), set_of(r).rows.end());
    }
    std::ranges::sort(result.rows);
    const auto repeated = std::ranges::unique(result.rows);
    result.rows.erase(repeated.begin(), repeated.end());
    result.values.resize(result.rows.size() * request_.width);
    const std::vector<float> zeros(request_.width);
    std::vector<std::size_t> at(ranks);
    std::vector<const void*> contributions(ranks);
    const std::uint64_t divisor = request_.op == Op::average ? ranks : 0;
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
      for (std::size_t r = 0; r < ranks; ++r) {
        const RowSet& set = set_of(r);
        const bool has = at[r] < set.rows.size() && set.rows[at[r]] == result.rows[i];
        contributions[r] = has ? set.values.data() + request_.width * at[r]++ : zeros.data();
      }
      kernel::reduce_many(request_.op, DType::f32, {result.values.data() + i * request_.width, DType::f32},
                          contributions, DType::f32, request_.width, divisor);
    }
    counts_.reset();
    numbers_.reset();
    values_.reset();
  }

  RowsRequest request_;
  std::size_t longest_;
  bool known_ = false;  ///< all ranks' counts have come
  std::shared_ptr<Gathered> all_;
  std::optional<engine::PeerMessages> counts_;
  std::optional<engine::PeerMessages> numbers_;
  std::optional<engine::PeerMessages> values_;
};

}  // namespace

std::shared_ptr<engine::Pending> start_rows_allreduce(engine::CommunicatorState& communicator,
                                                      const RowsRequest& request) {
  // What ranks compare is the matrix: their rows are unlike.
  const engine::Request call{.collective = schedule::Collective::allreduce,
                             .input = request.result.get(),
                             .output = request.result.get(),
                             .count = request.rows * request.width,
                             .type = DType::f32,
                             .op = request.op,
                             .name = "sparse gradients",
                             .context = 1 + request.width};
  const std::size_t longest = communicator.runtime().options.message_bytes;
  return communicator.start(call, [&](engine::Lookout& lookout, std::uint32_t sequence, std::string label) {
    return std::make_unique<RowsOperation>(request, lookout, sequence, std::move(label), longest);
  });
}

}  // namespace tutti::exchange
