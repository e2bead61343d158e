#include "schedule/executor.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "base/random.hpp"

namespace tutti::schedule {
namespace {

struct Number {
  double exact = std::numeric_limits<double>::quiet_NaN();
  float inexact = std::numeric_limits<float>::quiet_NaN();
};

Number contribution_of(Rank rank, std::uint32_t block) {
  base::Random random(static_cast<std::uint64_t>(rank) + 17, block);
  return {std::ldexp(1.0, 5 * rank), static_cast<float>(random.normal())};
}

Number sum(const Number& a, const Number& b) {
  return {a.exact + b.exact, a.inexact + b.inexact};
}

struct Message {
  Rank rank;
  Step step;
  std::vector<Number> payload;  ///< of a send
  bool done = false;
};

struct Lane {
  std::size_t round = 0;
  bool posted = false;
  std::vector<Step> steps;
  std::vector<Message> messages;
};

class Machine {
 public:
  explicit Machine(const Schedule& schedule)
      : schedule_(schedule), lanes_(static_cast<std::size_t>(schedule.ranks()) * schedule.strands()) {
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
      memory_.emplace_back(schedule.blocks());
      for (std::uint32_t block = 0; block < schedule.blocks(); ++block) {
        if (has_at_start(rank, block)) memory_.back()[block] = contribution_of(rank, block);
      }
    }
    input_ = memory_;
  }

  Outcome run() {
    Outcome outcome;
    while (outcome.failure.empty()) {
      bool moved = false;
      bool busy = false;
      for (std::size_t index = 0; index < lanes_.size(); ++index) moved = step(index, busy) || moved;
      if (!busy) break;
      if (!failure_.empty()) outcome.failure = failure_;
      if (!moved) outcome.failure = "deadlock";
    }
    if (outcome.failure.empty()) judge(outcome);
    return outcome;
  }

 private:
  bool has_at_start(Rank rank, std::uint32_t block) const {
    if (schedule_.collective() == Collective::broadcast) return rank == schedule_.root();
    return schedule_.collective() != Collective::allgather || std::cmp_equal(block, rank);
  }

  bool must_hold(Rank rank, std::uint32_t block) const {
    if (schedule_.collective() == Collective::reduce) return rank == schedule_.root();
    return schedule_.collective() != Collective::reduce_scatter || std::cmp_equal(block, rank);
  }

  /// One look at a lane: posts, pairs, or ends its round. True if anything happened.
  bool step(std::size_t index, bool& busy) {
    Lane& lane = lanes_[index];
    const auto rank = static_cast<Rank>(index / schedule_.strands());
    const auto strand = static_cast<std::uint32_t>(index % schedule_.strands());
    if (lane.round >= schedule_.rounds(rank, strand)) return false;
    busy = true;
    if (!lane.posted) {
      post(lane, rank, strand);
      return true;
    }
    bool moved = false;
    bool open = false;
    for (Message& message : lane.messages) {
      if (!message.done && message.step.kind != Kind::send) moved = pair(message, strand) || moved;
      open = open || !message.done;
    }
    if (open) return moved;
    finish(lane, rank);
    return true;
  }

  void post(Lane& lane, Rank rank, std::uint32_t strand) {
    Sink sink;
    schedule_.emit(rank, strand, static_cast<std::uint32_t>(lane.round), sink);
    lane.steps.assign(sink.steps().begin(), sink.steps().end());
    lane.messages.clear();
    for (const Step& step : lane.steps) {
      if (step.kind == Kind::reduce_slots) continue;
      Message message{rank, step, {}, false};
      if (step.kind == Kind::send) {
        const auto& mine = memory_[static_cast<std::size_t>(rank)];
        for (std::uint32_t b = step.blocks.first; b < step.blocks.last; ++b)
          message.payload.push_back(mine.at(b));
      }
      lane.messages.push_back(std::move(message));
    }
    lane.posted = true;
  }

  /// The first open send of the pair, in order, goes with the first open receive: only that one may take it.
  bool pair(Message& receive, std::uint32_t strand) {
    if (receive.step.peer < 0 || receive.step.peer >= schedule_.ranks()) return false;
    for (const Message& earlier :
         lanes_[static_cast<std::size_t>(receive.rank) * schedule_.strands() + strand].messages) {
      if (&earlier == &receive) break;
      if (!earlier.done && earlier.step.kind != Kind::send && earlier.step.peer == receive.step.peer)
        return false;
    }
    Lane& from = lanes_[static_cast<std::size_t>(receive.step.peer) * schedule_.strands() + strand];
    if (!from.posted) return false;
    for (Message& send : from.messages) {
      if (send.done || send.step.kind != Kind::send || send.step.peer != receive.rank) continue;
      if (send.step.blocks.size() != receive.step.blocks.size()) {
        failure_ = "sizes differ";
        return false;
      }
      receive.payload = send.payload;
      receive.done = send.done = true;
      return true;
    }
    return false;
  }

  void finish(Lane& lane, Rank rank) {
    auto& mine = memory_[static_cast<std::size_t>(rank)];
    auto& slots = slots_[rank];
    for (const Message& message : lane.messages) {
      if (message.step.kind == Kind::send) continue;
      for (std::uint32_t i = 0; i < message.payload.size(); ++i) {
        const std::uint32_t block = message.step.blocks.first + i;
        if (message.step.kind == Kind::recv) mine[block] = message.payload[i];
        if (message.step.kind == Kind::recv_reduce) mine[block] = sum(mine[block], message.payload[i]);
        if (message.step.kind == Kind::recv_slot) slots[{message.step.peer, block}] = message.payload[i];
      }
    }
    for (const Step& step : lane.steps) {
      if (step.kind != Kind::reduce_slots) continue;
      for (std::uint32_t block = step.blocks.first; block < step.blocks.last; ++block)
        mine[block] = sum_of_slots(rank, block);
    }
    ++lane.round;
    lane.posted = false;
  }

  /// The canonical order, written once more: neighbours until a power of two is left, then halves.
  Number sum_of_slots(Rank rank, std::uint32_t block) {
    std::vector<Number> values;
    for (Rank r = 0; r < schedule_.ranks(); ++r) {
      values.push_back(r == rank ? memory_[static_cast<std::size_t>(rank)][block] : slots_[rank][{r, block}]);
    }
    std::size_t power = 1;
    while (power * 2 <= values.size()) power *= 2;
    const std::size_t pairs = values.size() - power;
    std::vector<Number> level;
    for (std::size_t i = 0; i < pairs; ++i) level.push_back(sum(values[2 * i], values[2 * i + 1]));
    for (std::size_t i = 2 * pairs; i < values.size(); ++i) level.push_back(values[i]);
    while (level.size() > 1) {
      for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = sum(level[2 * i], level[2 * i + 1]);
      level.resize(level.size() / 2);
    }
    return level[0];
  }

  double wanted(std::uint32_t block) const {
    if (schedule_.collective() == Collective::broadcast)
      return contribution_of(schedule_.root(), block).exact;
    if (schedule_.collective() == Collective::allgather)
      return contribution_of(static_cast<Rank>(block), block).exact;
    double all = 0;
    for (Rank rank = 0; rank < schedule_.ranks(); ++rank) all += contribution_of(rank, block).exact;
    return all;
  }

  void judge(Outcome& outcome) const {
    outcome.values_right = outcome.ranks_agree = true;
    for (std::uint32_t block = 0; block < schedule_.blocks(); ++block) {
      const float* first = nullptr;
      for (Rank rank = 0; rank < schedule_.ranks(); ++rank) {
        if (!must_hold(rank, block)) continue;
        const Number& found = memory_[static_cast<std::size_t>(rank)][block];
        if (!(found.exact == wanted(block))) outcome.values_right = false;
        if (first == nullptr) first = &found.inexact;
        if (std::memcmp(first, &found.inexact, sizeof *first) != 0) outcome.ranks_agree = false;
        outcome.inexact.push_back(found.inexact);
      }
    }
  }

  const Schedule& schedule_;
  std::vector<std::vector<Number>> memory_;
  std::vector<std::vector<Number>> input_;
  std::map<Rank, std::map<std::pair<Rank, std::uint32_t>, Number>> slots_;
  std::vector<Lane> lanes_;
  std::string failure_;
};

}  // namespace

Outcome execute(const Schedule& schedule) {
  return Machine(schedule).run();
}

}  // namespace tutti::schedule
