#include <algorithm>

#include "base/error.hpp"
#include "engine/communicator_state.hpp"
#include "exchange/operation.hpp"

namespace tutti::exchange {
namespace {

using engine::Turn;

/// The allreduces are calls of the same communicator, numbered as this operation is: whatever way is best for
/// their lengths, and in canonical order.
class SumsOperation final : public CodecOperation {
 public:
  SumsOperation(const CodedRequest& request, engine::Lookout& lookout, std::uint32_t sequence,
                std::string label, engine::CommunicatorState& communicator)
      : CodecOperation(request, lookout, sequence, std::move(label)),
        codec_(dynamic_cast<compress::LinearCodec&>(*request.codec)) {
    rounds_.resize(codec_.rounds());
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      std::size_t count = 0;
      for (const Run& run : request_.runs) count += sums(run, round);
      rounds_[round].sums = std::make_shared<std::vector<float>>(count);
      if (count == 0) continue;
      rounds_[round].operation = communicator.make({.collective = schedule::Collective::allreduce,
                                                    .input = rounds_[round].sums->data(),
                                                    .output = rounds_[round].sums->data(),
                                                    .count = count,
                                                    .type = DType::f32,
                                                    .op = Op::sum,
                                                    .name = "coded gradients"});
    }
    gathered_.resize(request_.runs.size());
  }

  std::string describe() const override {
    if (round_ < rounds_.size() && rounds_[round_].operation) return rounds_[round_].operation->describe();
    return label_;
  }

  void look_around(Seconds idle) override {
    if (round_ < rounds_.size() && rounds_[round_].operation) rounds_[round_].operation->look_around(idle);
  }

  void sleep(Seconds most) override {
    if (round_ < rounds_.size() && rounds_[round_].operation) rounds_[round_].operation->sleep(most);
  }

 private:
  struct Round {
    std::shared_ptr<std::vector<float>> sums;      ///< of all runs, one behind the other
    std::unique_ptr<engine::Operation> operation;  ///< null: nothing to add in this round
  };

  std::size_t sums(const Run& run, std::size_t round) const {
    return codec_.sums(piece_of(run, rank_), run.count, round);
  }

  Turn step() override {
    if (!contributed_) {
      contribute();
      contributed_ = true;
      return Turn::moved;
    }
    Round& round = rounds_[round_];
    if (round.operation) {
      const Turn turn = round.operation->advance();
      if (turn != Turn::done) return turn;
    }
    take_sums();
    contributed_ = false;
    if (++round_ < rounds_.size()) return Turn::moved;
    conclude();
    return Turn::done;
  }

  void contribute() {
    std::span<float> rest(*rounds_[round_].sums);
    for (std::size_t r = 0; r < request_.runs.size(); ++r) {
      const Run& run = request_.runs[r];
      const std::size_t count = sums(run, round_);
      codec_.contribute(piece_of(run, rank_), round_, values(run), state(run).local, gathered_[r],
                        rest.first(count));
      rest = rest.subspan(count);
    }
  }

  void take_sums() {
    auto from = rounds_[round_].sums->begin();
    for (std::size_t r = 0; r < request_.runs.size(); ++r) {
      const auto count = static_cast<std::ptrdiff_t>(sums(request_.runs[r], round_));
      gathered_[r].insert(gathered_[r].end(), from, from + count);
      from += count;
    }
  }

  void conclude() {
    for (std::size_t r = 0; r < request_.runs.size(); ++r) {
      const Run& run = request_.runs[r];
      codec_.conclude(piece_of(run, rank_), gathered_[r], state(run).local, values(run));
      divide(run);
    }
  }

  compress::LinearCodec& codec_;
  std::vector<Round> rounds_;
  std::vector<std::vector<float>> gathered_;  ///< of each run: the sums of the rounds so far
  std::size_t round_ = 0;
  bool contributed_ = false;
};

}  // namespace

std::unique_ptr<engine::Operation> make_by_sums(const CodedRequest& request, engine::Lookout& lookout,
                                                std::uint32_t sequence, std::string label,
                                                engine::CommunicatorState& communicator) {
  return std::make_unique<SumsOperation>(request, lookout, sequence, std::move(label), communicator);
}

}  // namespace tutti::exchange
