// The checker: carries out a schedule symbolically under rendezvous. Every contribution is a 64-bit number;
// beside the wrapping sum of what a block holds runs a hash of its addition tree that is commutative, like
// the kernels, but not associative: equal hashes mean equal trees, hence equal bits.
#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/canonical.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "schedule/pairing.hpp"
#include "schedule/schedule.hpp"

namespace tutti::schedule {
namespace {

using base::mix;

/// Up to so many ranks the exact set of contributors is carried along.
constexpr Rank exact_limit = 64;

/// What a block holds.
struct Value {
  std::uint64_t sum = 0;   ///< wrapping sum of the contributions
  std::uint64_t tree = 0;  ///< hash of the addition tree
  std::uint64_t set = 0;   ///< bit r: the contribution of rank r; for at most exact_limit ranks
};

enum class Holds : std::uint8_t { nothing, contribution, something };

std::uint64_t add_trees(std::uint64_t a, std::uint64_t b) {
  return mix((a ^ b) * 0x9e3779b97f4a7c15ULL + (a + b));
}

struct Defect {
  std::string text;
};

template <class... Args>
[[noreturn]] void defect(fmt::format_string<Args...> format, Args&&... args) {
  throw Defect{fmt::format(format, std::forward<Args>(args)...)};
}

class Checker {
 public:
  explicit Checker(const Schedule& schedule)
      : schedule_(schedule),
        p_(schedule.ranks()),
        blocks_(schedule.blocks()),
        strands_(schedule.strands()),
        exact_(p_ <= exact_limit),
        values_(static_cast<std::size_t>(p_) * blocks_),
        holds_(values_.size(), Holds::nothing),
        received_(values_.size(), 0),
        strand_of_(strands_ > 1 ? values_.size() : 0, no_strand),
        lanes_(static_cast<std::size_t>(p_) * strands_),
        slots_(static_cast<std::size_t>(p_)) {
    start();
  }

  Verdict run() {
    Verdict verdict;
    try {
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) ready_.push_back(lane);
      while (!ready_.empty()) {
        const std::size_t lane = ready_.back();
        ready_.pop_back();
        advance(lane);
      }
      find_stuck();
      conclude(verdict);
    } catch (const Defect& found) {
      verdict = {};
      verdict.first_defect = found.text;
    }
    verdict.steps = steps_;
    return verdict;
  }

 private:
  static constexpr std::uint8_t no_strand = 255;

  /// A receive that has met its send: the values wait for the end of the round.
  struct Arrived {
    Kind kind;
    Rank peer;
    Block blocks;
    std::size_t first;  ///< of its values in Lane::incoming
  };

  /// One strand of one rank.
  struct Lane {
    std::uint32_t round = 0;
    std::uint32_t open = 0;
    bool posted = false;
    std::vector<Arrived> arrived;
    std::vector<Value> incoming;
    std::vector<Block> slot_sums;
  };

  struct Slot {
    Rank peer;
    std::uint32_t block;
    Value value;
    Block received;  ///< with these others, in one message: they must be added together too
  };

  std::size_t at(Rank rank, std::uint32_t block) const {
    return static_cast<std::size_t>(rank) * blocks_ + block;
  }

  Rank rank_of(std::size_t lane) const { return static_cast<Rank>(lane / strands_); }

  std::uint32_t strand_of(std::size_t lane) const { return static_cast<std::uint32_t>(lane % strands_); }

  std::string where(std::size_t lane) const {
    return fmt::format("rank {} strand {} round {}", rank_of(lane), strand_of(lane), lanes_[lane].round);
  }

  /// Linear in the block, so that totals over ranks are cheap; odd factors, so that no block's number is
  /// lost.
  std::uint64_t number(Rank rank, std::uint32_t block) const {
    return mix(static_cast<std::uint64_t>(rank) + 1) * (2 * std::uint64_t{block} + 1);
  }

  Value contribution(Rank rank, std::uint32_t block) const {
    const std::uint64_t n = number(rank, block);
    return {n, mix(n), exact_ ? std::uint64_t{1} << static_cast<unsigned>(rank % exact_limit) : 0};
  }

  bool reduces() const {
    return schedule_.collective() != Collective::allgather && schedule_.collective() != Collective::broadcast;
  }

  void start() {
    for (Rank rank = 0; rank < p_; ++rank) rank_total_ += mix(static_cast<std::uint64_t>(rank) + 1);
    for (Rank rank = 0; rank < p_; ++rank) {
      for (std::uint32_t block = 0; block < blocks_; ++block) {
        const bool has =
            reduces() || (schedule_.collective() == Collective::broadcast ? rank == schedule_.root()
                                                                          : std::cmp_equal(block, rank));
        if (!has) continue;
        values_[at(rank, block)] = contribution(rank, block);
        holds_[at(rank, block)] = Holds::contribution;
      }
    }
  }

  Value expected(std::uint32_t block) const {
    if (schedule_.collective() == Collective::broadcast) return contribution(schedule_.root(), block);
    if (schedule_.collective() == Collective::allgather) return contribution(static_cast<Rank>(block), block);
    const std::uint64_t everybody = p_ == exact_limit
                                        ? ~std::uint64_t{0}
                                        : (std::uint64_t{1} << static_cast<unsigned>(p_ % exact_limit)) - 1;
    return {rank_total_ * (2 * std::uint64_t{block} + 1), 0, exact_ ? everybody : 0};
  }

  std::uint64_t canonical_tree(std::uint32_t block) const {
    return base::canonical_sum(
        static_cast<std::uint32_t>(p_),
        [&](std::uint32_t rank) { return mix(number(static_cast<Rank>(rank), block)); }, add_trees);
  }

  void advance(std::size_t index) {
    Lane& lane = lanes_[index];
    const Rank rank = rank_of(index);
    const std::uint32_t strand = strand_of(index);
    const std::uint32_t rounds = schedule_.rounds(rank, strand);
    for (;;) {
      if (lane.open > 0) return;  // also when an older call has gone on to the next round already
      if (lane.posted) {
        finish_round(index);
        ++lane.round;
        lane.posted = false;
      }
      if (lane.round >= rounds) return;
      schedule_.emit(rank, strand, lane.round, sink_);
      lane.posted = true;
      post(index);
    }
  }

  void post(std::size_t index) {
    Lane& lane = lanes_[index];
    const Rank rank = rank_of(index);
    const auto steps = sink_.steps();
    // All are open before the first one is matched: a round ends only when the last one has been.
    for (const Step& step : steps) {
      check_step(index, step);
      if (step.kind != Kind::reduce_slots) ++lane.open;
    }
    for (const Step& step : steps) {
      ++steps_;
      if (step.kind == Kind::reduce_slots) {
        lane.slot_sums.push_back(step.blocks);
        continue;
      }
      const bool sends = step.kind == Kind::send;
      const Posted mine{rank, step};
      const Rank from = sends ? rank : step.peer;
      const Rank to = sends ? step.peer : rank;
      if (const auto other = pairing_.match(from, to, strand_of(index), sends, mine)) {
        sends ? deliver(mine, *other, strand_of(index)) : deliver(*other, mine, strand_of(index));
      }
    }
  }

  void check_step(std::size_t index, const Step& step) {
    const Rank rank = rank_of(index);
    if (step.blocks.first >= step.blocks.last || step.blocks.last > blocks_) {
      defect("{}: {} of blocks [{}, {}) of {}", where(index), name_of(step.kind), step.blocks.first,
             step.blocks.last, blocks_);
    }
    if (step.kind != Kind::reduce_slots && (step.peer < 0 || step.peer >= p_ || step.peer == rank)) {
      defect("{}: {} has peer {}", where(index), name_of(step.kind), step.peer);
    }
    const std::uint32_t stamp = lanes_[index].round + 1;
    for (std::uint32_t block = step.blocks.first; block < step.blocks.last; ++block) {
      if (strands_ > 1) {
        std::uint8_t& owner = strand_of_[at(rank, block)];
        if (owner == no_strand) owner = static_cast<std::uint8_t>(strand_of(index));
        if (owner != strand_of(index))
          defect("{}: block {} belongs to strand {}", where(index), block, owner);
      }
      if (step.kind == Kind::send) {
        if (holds_[at(rank, block)] == Holds::nothing) {
          defect("{}: sends block {} to rank {} before it holds anything", where(index), block, step.peer);
        }
      } else if (step.kind != Kind::recv_slot) {
        std::uint32_t& last = received_[at(rank, block)];
        if (last == stamp) defect("{}: block {} is written twice in one round", where(index), block);
        last = stamp;
      }
    }
  }

  /// A send and its receive are both there: the values go over, and both are done.
  void deliver(const Posted& send, const Posted& receive, std::uint32_t strand) {
    const std::size_t from = static_cast<std::size_t>(send.rank) * strands_ + strand;
    const std::size_t to = static_cast<std::size_t>(receive.rank) * strands_ + strand;
    const Block blocks = send.step.blocks;
    if (!(blocks == receive.step.blocks)) {
      defect("{}: sends blocks [{}, {}) to rank {}, which receives [{}, {}) (round {})", where(from),
             blocks.first, blocks.last, receive.rank, receive.step.blocks.first, receive.step.blocks.last,
             lanes_[to].round);
    }
    Lane& lane = lanes_[to];
    lane.arrived.push_back({receive.step.kind, send.rank, blocks, lane.incoming.size()});
    for (std::uint32_t block = blocks.first; block < blocks.last; ++block) {
      const std::size_t source = at(send.rank, block);
      if (receive.step.kind == Kind::recv_slot && holds_[source] != Holds::contribution) {
        defect("{}: sends block {} into a slot of rank {}, but it is no contribution any more", where(from),
               block, receive.rank);
      }
      if (receive.step.kind == Kind::recv && reduces() && values_[source].sum != expected(block).sum) {
        defect("{}: sends block {} as final to rank {}, but its sum is not complete", where(from), block,
               receive.rank);
      }
      lane.incoming.push_back(values_[source]);
    }
    close(from);
    close(to);
  }

  void close(std::size_t index) {
    if (--lanes_[index].open == 0) ready_.push_back(index);
  }

  void finish_round(std::size_t index) {
    Lane& lane = lanes_[index];
    const Rank rank = rank_of(index);
    for (const Arrived& message : lane.arrived) {
      for (std::uint32_t block = message.blocks.first; block < message.blocks.last; ++block) {
        const Value& value = lane.incoming[message.first + (block - message.blocks.first)];
        if (message.kind == Kind::recv_slot) {
          slots_[static_cast<std::size_t>(rank)].push_back({message.peer, block, value, message.blocks});
        } else {
          apply(index, message, block, value);
        }
      }
    }
    for (const Block blocks : lane.slot_sums) {
      for (std::uint32_t block = blocks.first; block < blocks.last; ++block) add_slots(index, block, blocks);
    }
    lane.arrived.clear();
    lane.incoming.clear();
    lane.slot_sums.clear();
  }

  void apply(std::size_t index, const Arrived& message, std::uint32_t block, const Value& value) {
    Value& mine = values_[at(rank_of(index), block)];
    Holds& holds = holds_[at(rank_of(index), block)];
    if (message.kind == Kind::recv) {
      mine = value;
    } else {
      if (holds == Holds::nothing) defect("{}: adds to block {}, which holds nothing", where(index), block);
      if ((mine.set & value.set) != 0) {
        defect("{}: block {} gets a contribution twice (received from rank {})", where(index), block,
               message.peer);
      }
      mine = {mine.sum + value.sum, add_trees(mine.tree, value.tree), mine.set | value.set};
    }
    holds = Holds::something;
  }

  void add_slots(std::size_t index, std::uint32_t block, Block added) {
    const Rank rank = rank_of(index);
    const std::size_t place = at(rank, block);
    if (holds_[place] != Holds::contribution)
      defect("{}: adds slots to block {}, which is no contribution any more", where(index), block);
    slot_values_.assign(static_cast<std::size_t>(p_), Value{});
    slot_filled_.assign(static_cast<std::size_t>(p_), false);
    slot_values_[static_cast<std::size_t>(rank)] = values_[place];
    slot_filled_[static_cast<std::size_t>(rank)] = true;
    for (const Slot& slot : slots_[static_cast<std::size_t>(rank)]) {
      if (slot.block != block) continue;
      const auto peer = static_cast<std::size_t>(slot.peer);
      if (slot.received.first != added.first || slot.received.last != added.last)
        defect("{}: the slot of rank {} for block {} was received with other blocks than it is added with",
               where(index), slot.peer, block);
      if (slot_filled_[peer])
        defect("{}: the slot of rank {} for block {} is filled twice", where(index), slot.peer, block);
      slot_filled_[peer] = true;
      slot_values_[peer] = slot.value;
    }
    const auto missing = std::find(slot_filled_.begin(), slot_filled_.end(), false);
    if (missing != slot_filled_.end()) {
      defect("{}: adds slots of block {} without the contribution of rank {}", where(index), block,
             missing - slot_filled_.begin());
    }
    values_[place] = base::canonical_sum(
        static_cast<std::uint32_t>(p_), [&](std::uint32_t r) { return slot_values_[r]; },
        [](const Value& a, const Value& b) {
          return Value{a.sum + b.sum, add_trees(a.tree, b.tree), a.set | b.set};
        });
    holds_[place] = Holds::something;
  }

  void find_stuck() const {
    for (std::size_t index = 0; index < lanes_.size(); ++index) {
      const Lane& lane = lanes_[index];
      if (lane.open == 0) continue;
      const auto waits = pairing_.first_open(rank_of(index), strand_of(index));
      defect("{}: never ends: {} of its messages have no partner{}", where(index), lane.open,
             waits ? fmt::format(", the first a {} {} rank {} of blocks [{}, {})", name_of(waits->kind),
                                 waits->kind == Kind::send ? "to" : "from", waits->peer, waits->blocks.first,
                                 waits->blocks.last)
                   : "");
    }
  }

  bool must_hold(Rank rank, std::uint32_t block) const {
    if (schedule_.collective() == Collective::reduce) return rank == schedule_.root();
    return schedule_.collective() != Collective::reduce_scatter || std::cmp_equal(block, rank);
  }

  void conclude(Verdict& verdict) const {
    verdict = {.correct = true, .agrees = true, .canonical = true};
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      const Value wanted = expected(block);
      const std::uint64_t tree = reduces() ? canonical_tree(block) : wanted.tree;
      const Value* first = nullptr;
      for (Rank rank = 0; rank < p_; ++rank) {
        if (!must_hold(rank, block)) continue;
        const Value& found = values_[at(rank, block)];
        if (holds_[at(rank, block)] == Holds::nothing) defect("rank {} ends without block {}", rank, block);
        if (found.sum != wanted.sum || found.set != wanted.set) wrong_end(rank, block, found, wanted);
        if (first == nullptr) first = &found;
        if (found.tree != first->tree) verdict.agrees = false;
        if (found.tree != tree) verdict.canonical = false;
      }
    }
    if (!verdict.agrees) verdict.canonical = false;
  }

  [[noreturn]] void wrong_end(Rank rank, std::uint32_t block, const Value& found, const Value& wanted) const {
    if (exact_ && reduces()) {
      for (Rank r = 0; r < p_; ++r) {
        if (((wanted.set & ~found.set) >> static_cast<unsigned>(r) & 1U) != 0)
          defect("rank {} ends with block {} without the contribution of rank {}", rank, block, r);
      }
    }
    defect("rank {} ends with a wrong block {}", rank, block);
  }

  const Schedule& schedule_;
  const Rank p_;
  const std::uint32_t blocks_;
  const std::uint32_t strands_;
  const bool exact_;
  std::uint64_t rank_total_ = 0;
  std::vector<Value> values_;
  std::vector<Holds> holds_;
  std::vector<std::uint32_t> received_;  ///< round (from 1) in which a block was written last
  std::vector<std::uint8_t> strand_of_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Slot>> slots_;
  std::vector<Value> slot_values_;
  std::vector<bool> slot_filled_;
  std::vector<std::size_t> ready_;
  Pairing pairing_;
  Sink sink_;
  std::uint64_t steps_ = 0;
};

}  // namespace

Verdict check(const Schedule& schedule) {
  return Checker(schedule).run();
}

}  // namespace tutti::schedule
