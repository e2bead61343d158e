#include "engine/plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "engine/workspace.hpp"
#include "kernel/kernel.hpp"

namespace tutti::engine {

using schedule::Block;
using schedule::Collective;
using schedule::Kind;
using schedule::Step;

namespace {

constexpr std::size_t align_up(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

bool is_receive(Kind kind) {
  return kind == Kind::recv || kind == Kind::recv_reduce || kind == Kind::recv_slot;
}

/// Whether the output of `rank` has room for this block.
bool output_holds(Collective collective, Rank rank, Rank root, std::uint32_t block) {
  if (collective == Collective::reduce) return rank == root;
  if (collective == Collective::reduce_scatter) return std::cmp_equal(block, rank);
  return true;
}

/// Calls visit(rank's step, round) for a whole program of one strand.
template <class Visit>
void walk(const schedule::Schedule& schedule, Rank rank, std::uint32_t strand, schedule::Sink& sink,
          const Visit& visit) {
  for (std::uint32_t round = 0; round < schedule.rounds(rank, strand); ++round) {
    schedule.emit(rank, strand, round, sink);
    visit(round, sink.steps());
  }
}

/// For every message that `peer` sends to `rank` in a strand, in order: are all its blocks contributions that
/// nothing was added to yet? `by_block`: a run of blocks goes as one message for each.
std::vector<bool> untouched_messages(const schedule::Schedule& schedule, Rank peer, Rank rank,
                                     std::uint32_t strand, bool by_block) {
  std::vector<bool> touched(schedule.blocks(), false);
  std::vector<bool> untouched;
  schedule::Sink sink;
  walk(schedule, peer, strand, sink, [&](std::uint32_t, std::span<const Step> steps) {
    for (const Step& step : steps) {
      if (step.kind != Kind::send || step.peer != rank) continue;
      bool clean = true;
      for (std::uint32_t b = step.blocks.first; b < step.blocks.last; ++b) {
        if (by_block) untouched.push_back(!touched[b]);
        clean = clean && !touched[b];
      }
      if (!by_block) untouched.push_back(clean);
    }
    for (const Step& step : steps) {
      if (step.kind == Kind::send || step.kind == Kind::recv_slot) continue;
      for (std::uint32_t b = step.blocks.first; b < step.blocks.last; ++b) touched[b] = true;
    }
  });
  return untouched;
}

}  // namespace

/// Follows this rank's program once, keeping for every block what it holds and where, and writes down the
/// moves.
class PlanCompiler {
 public:
  PlanCompiler(Plan& plan, const schedule::Schedule& schedule, const Request& request)
      : plan_(plan),
        schedule_(schedule),
        root_(request.root),
        in_place_(request.in_place(plan.rank_)),
        blocks_(schedule.blocks()),
        last_write_(schedule.blocks(), 0) {}

  void run() {
    start_states();
    find_last_writes();
    std::uint32_t step_number = 0;
    for (std::uint32_t strand = 0; strand < schedule_.strands(); ++strand) {
      plan_.strands_.emplace_back();
      strand_ = strand;
      slot_areas_.clear();
      slot_bytes_ = 0;
      receive_counts_.clear();
      opened_.clear();
      std::size_t most_round_scratch = 0;
      walk(schedule_, plan_.rank_, strand, sink_, [&](std::uint32_t, std::span<const Step> steps) {
        round_scratch_ = 0;
        add_round(steps, step_number);
        step_number += static_cast<std::uint32_t>(steps.size());
        most_round_scratch = std::max(most_round_scratch, round_scratch_);
      });
      finish_strand(most_round_scratch);
    }
    find_untouched();
  }

 private:
  struct BlockState {
    State state = State::absent;
    Place place = Place::input;
    friend bool operator==(const BlockState&, const BlockState&) = default;
  };

  void start_states() {
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      BlockState& block = blocks_[b];
      if (schedule::adds(plan_.collective_)) {
        block = {State::input, plan_.scaled_ ? use(Place::partial) : Place::input};
      } else if (plan_.collective_ == Collective::allgather ? std::cmp_equal(b, plan_.rank_)
                                                            : plan_.rank_ == root_) {
        block = {State::final, Place::output};  // the prologue has copied it there
      }
    }
  }

  /// A value made by an addition is final if nothing overwrites it on this rank and the rank must hold it at
  /// the end.
  void find_last_writes() {
    std::uint32_t number = 0;
    for (std::uint32_t strand = 0; strand < schedule_.strands(); ++strand) {
      walk(schedule_, plan_.rank_, strand, sink_, [&](std::uint32_t, std::span<const Step> steps) {
        for (const Step& step : steps) {
          if (step.kind != Kind::send && step.kind != Kind::recv_slot) {
            for (std::uint32_t b = step.blocks.first; b < step.blocks.last; ++b) last_write_[b] = number;
          }
          ++number;
        }
      });
    }
  }

  void add_round(std::span<const Step> steps, std::uint32_t first_number) {
    Round round{.first = static_cast<std::uint32_t>(plan_.moves_.size())};
    const std::vector<BlockState> before = blocks_;
    for_kind(steps, is_receive,
             [&](const Step& step, std::uint32_t i) { add_receive(step, first_number + i, before); });
    round.sends = static_cast<std::uint32_t>(plan_.moves_.size());
    for_kind(
        steps, [](Kind kind) { return kind == Kind::send; },
        [&](const Step& step, std::uint32_t) { add_send(step, before); });
    round.slots = static_cast<std::uint32_t>(plan_.moves_.size());
    for_kind(
        steps, [](Kind kind) { return kind == Kind::reduce_slots; },
        [&](const Step& step, std::uint32_t i) { add_reduce_slots(step, first_number + i); });
    round.last = static_cast<std::uint32_t>(plan_.moves_.size());
    mark_conflicts(round);
    Strand& strand = plan_.strands_.back();
    strand.most_moves = std::max(strand.most_moves, round.last - round.first);
    strand.rounds.push_back(round);
  }

  template <class Choose, class Add>
  static void for_kind(std::span<const Step> steps, const Choose& choose, const Add& add) {
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (choose(steps[i].kind)) add(steps[i], i);
    }
  }

  void add_send(const Step& step, const std::vector<BlockState>& before) {
    each_message(step.blocks, [&](Block blocks) {
      Move move = start_move(step, blocks);
      cut(blocks, [&](std::uint32_t b) {
        return Piece{{}, before[b].state, before[b].place, false, before[b].place};
      });
      finish_pieces(move);
      const auto pieces = plan_.pieces(move);
      const State state = pieces.front().state;
      const bool uniform =
          std::all_of(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.state == state; });
      if (std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.state == State::absent; }))
        broken(step, "sends a block that it does not have");
      move.wire = !uniform || state == State::partial ? plan_.accumulator_ : type_of(state);
      move.staged = pieces.size() > 1 || type_of(state) != move.wire;
      if (move.staged) move.scratch = take_scratch(blocks, move.wire);
      plan_.moves_.push_back(move);
    });
  }

  void add_receive(const Step& step, std::uint32_t number, const std::vector<BlockState>& before) {
    each_message(step.blocks, [&](Block blocks) {
      Move move = start_move(step, blocks);
      const bool untouched = peer_sends_contribution(step);
      if (step.kind == Kind::recv_slot) {
        move.wire = plan_.contribution();
        move.staged = true;
        move.scratch = slot(blocks, step.peer);
      } else if (step.kind == Kind::recv_reduce) {
        move.wire = untouched ? plan_.contribution() : plan_.accumulator_;
        move.staged = true;
        move.scratch = take_scratch(blocks, move.wire);
        add_sum_pieces(step, move, blocks, number, before);
      } else {
        move.wire = plan_.type_;
        cut(blocks, [&](std::uint32_t b) {
          if (!output_holds(plan_.collective_, plan_.rank_, root_, b))
            broken(step, "receives a final value that its output has no room for");
          blocks_[b] = {State::final, Place::output};
          return Piece{{}, State::final, Place::output, true, Place::output};
        });
        finish_pieces(move);
      }
      plan_.moves_.push_back(move);
    });
  }

  void add_reduce_slots(const Step& step, std::uint32_t number) {
    each_message(step.blocks, [&](Block blocks) {
      Move move = start_move(step, blocks);
      const auto area = slot_areas_.find({blocks.first, blocks.last});
      if (area == slot_areas_.end()) {
        if (plan_.ranks_ > 1) broken(step, "adds slots that nothing was received into");
      } else {
        move.scratch = area->second;
      }
      move.wire = plan_.contribution();
      add_sum_pieces(step, move, blocks, number, blocks_);
      const auto pieces = plan_.pieces(move);
      if (pieces.size() != 1 || pieces.front().state != State::input)
        broken(step, "adds slots to blocks that are no contributions any more");
      plan_.moves_.push_back(move);
    });
  }

  /// Pieces of a step that adds to blocks: where each is before and after.
  void add_sum_pieces(const Step& step, Move& move, Block blocks, std::uint32_t number,
                      const std::vector<BlockState>& before) {
    cut(blocks, [&](std::uint32_t b) {
      const BlockState old = before[b];
      if (old.state != State::input && old.state != State::partial)
        broken(step, "adds to a block that holds no sum");
      const bool holds = output_holds(plan_.collective_, plan_.rank_, root_, b);
      const bool final = holds && last_write_[b] == number;
      const Place to =
          final || (holds && plan_.type_ == plan_.accumulator_) ? Place::output : use(Place::partial);
      blocks_[b] = {final ? State::final : State::partial, to};
      return Piece{{}, old.state, old.place, final, to};
    });
    finish_pieces(move);
  }

  /// A receive that writes what is being sent in the same round lands aside; a sum waits until those sends
  /// are done.
  void mark_conflicts(const Round& round) {
    for (std::uint32_t r = round.first; r < round.last; ++r) {
      Move& write = plan_.moves_[r];
      if (write.kind == Kind::send || write.kind == Kind::recv_slot) continue;
      for (std::uint32_t s = round.sends; s < round.slots; ++s) {
        const Move& send = plan_.moves_[s];
        // Staged ones are copied before any receive is posted.
        if (!send.staged && overlaps(send, write)) write.after_sends = true;
      }
      if (write.kind == Kind::recv && write.after_sends) {
        write.staged = true;
        write.scratch = take_scratch(write.blocks, write.wire);
      }
    }
  }

  bool overlaps(const Move& send, const Move& write) const {
    for (const Piece& from : plan_.pieces(send)) {
      for (const Piece& to : plan_.pieces(write)) {
        const bool same_memory =
            from.from == to.to || (in_place_ && from.from != Place::partial && to.to != Place::partial);
        if (same_memory && from.blocks.first < to.blocks.last && to.blocks.first < from.blocks.last)
          return true;
      }
    }
    return false;
  }

  Move start_move(const Step& step, Block blocks) {
    const bool message = step.kind != Kind::reduce_slots;
    return {.kind = step.kind,
            .opening = message && opened_.emplace(step.peer, step.kind == Kind::send).second,
            .peer = step.peer,
            .blocks = blocks,
            .first_piece = static_cast<std::uint32_t>(plan_.pieces_.size())};
  }

  void finish_pieces(Move& move) const {
    move.pieces = static_cast<std::uint32_t>(plan_.pieces_.size()) - move.first_piece;
  }

  /// Cuts blocks into runs for which `describe` says the same.
  template <class Describe>
  void cut(Block blocks, const Describe& describe) {
    const std::size_t start = plan_.pieces_.size();
    for (std::uint32_t b = blocks.first; b < blocks.last; ++b) {
      Piece piece = describe(b);
      piece.blocks = {b, b + 1};
      if (plan_.pieces_.size() > start && continues(plan_.pieces_.back(), piece)) {
        plan_.pieces_.back().blocks.last = b + 1;
      } else {
        plan_.pieces_.push_back(piece);
      }
    }
  }

  static bool continues(const Piece& a, const Piece& b) {
    return a.state == b.state && a.from == b.from && a.becomes_final == b.becomes_final && a.to == b.to;
  }

  /// One message for the run of blocks, or one for each where they are not contiguous.
  template <class Add>
  void each_message(Block blocks, const Add& add) {
    if (plan_.geometry_.runs_are_contiguous()) {
      add(blocks);
      return;
    }
    for (std::uint32_t b = blocks.first; b < blocks.last; ++b) add(Block{b, b + 1});
  }

  bool peer_sends_contribution(const Step& step) {
    const std::size_t n = receive_counts_[step.peer]++;
    if (step.kind != Kind::recv_reduce || plan_.contribution() == plan_.accumulator_) return true;
    auto& messages = peers_[{step.peer, strand_}];
    if (messages.empty())
      messages = untouched_messages(schedule_, step.peer, plan_.rank_, strand_,
                                    !plan_.geometry_.runs_are_contiguous());
    if (n >= messages.size()) broken(step, "receives more messages than the peer sends");
    return messages[n];
  }

  DType type_of(State state) const {
    if (state == State::input) return plan_.contribution();
    return state == State::final ? plan_.type_ : plan_.accumulator_;
  }

  Place use(Place place) {
    if (place == Place::partial) plan_.needs_partial_ = true;
    return place;
  }

  std::size_t take_scratch(Block blocks, DType type) {
    const std::size_t offset = round_scratch_;
    round_scratch_ += align_up(plan_.geometry_.most_elements(blocks) * size_of(type));
    return offset;
  }

  /// Slots outlive a round: they lie behind the scratch of all rounds (see finish_strand).
  std::size_t slot(Block blocks, Rank peer) {
    const std::size_t bytes = align_up(plan_.geometry_.most_elements(blocks) * size_of(plan_.contribution()));
    const auto [area, fresh] = slot_areas_.try_emplace({blocks.first, blocks.last}, slot_bytes_);
    if (fresh) slot_bytes_ += bytes * static_cast<std::size_t>(plan_.ranks_);
    return area->second + bytes * static_cast<std::size_t>(peer);
  }

  void finish_strand(std::size_t round_scratch) {
    Strand& strand = plan_.strands_.back();
    for (const Round& round : strand.rounds) {
      for (std::uint32_t m = round.first; m < round.last; ++m) {
        Move& move = plan_.moves_[m];
        if (move.kind == Kind::recv_slot || move.kind == Kind::reduce_slots) move.scratch += round_scratch;
      }
    }
    strand.scratch_bytes = round_scratch + slot_bytes_;
  }

  void find_untouched() {
    if (!schedule::adds(plan_.collective_)) return;
    const auto untouched = [&](std::uint32_t b) {
      return blocks_[b].state == State::input && output_holds(plan_.collective_, plan_.rank_, root_, b);
    };
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      if (untouched(b))
        plan_.untouched_.push_back({{b, b + 1}, State::input, blocks_[b].place, true, Place::output});
    }
  }

  [[noreturn]] void broken(const Step& step, std::string_view what) const {
    base::fail<Error>("schedule for {} ranks: rank {} strand {}: {} of blocks [{}, {}) {}", plan_.ranks_,
                      plan_.rank_, strand_, schedule::name_of(step.kind), step.blocks.first, step.blocks.last,
                      what);
  }

  Plan& plan_;
  const schedule::Schedule& schedule_;
  Rank root_;
  bool in_place_;
  std::uint32_t strand_ = 0;
  schedule::Sink sink_;
  std::vector<BlockState> blocks_;
  std::vector<std::uint32_t> last_write_;
  std::size_t round_scratch_ = 0;
  std::size_t slot_bytes_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> slot_areas_;
  std::map<Rank, std::size_t> receive_counts_;
  std::set<std::pair<Rank, bool>> opened_;
  std::map<std::pair<Rank, std::uint32_t>, std::vector<bool>> peers_;
};

Plan::Plan(const schedule::Schedule& schedule, const Request& request, Rank rank, std::uint64_t segment_bytes,
           std::uint32_t in_flight)
    : collective_(request.collective),
      op_(request.op),
      type_(request.type),
      accumulator_(schedule::adds(request.collective) ? kernel::accumulator(request.type, request.op)
                                                      : request.type),
      scaled_(request.prescale != 1.0),
      prescale_(request.prescale),
      contributors_(request.contributors != 0 ? request.contributors
                                              : static_cast<std::uint64_t>(schedule.ranks())),
      ranks_(schedule.ranks()),
      rank_(rank),
      geometry_(request, schedule.ranks(), rank, schedule.blocks(), segment_bytes),
      in_flight_(in_flight) {
  PlanCompiler(*this, schedule, request).run();
}

Plan::~Plan() = default;

std::unique_ptr<Workspace> Plan::take_workspace() {
  {
    const std::scoped_lock lock(pool_mutex_);
    if (!pool_.empty()) {
      auto workspace = std::move(pool_.back());
      pool_.pop_back();
      return workspace;
    }
  }
  auto workspace = std::make_unique<Workspace>();
  if (needs_partial_) workspace->partial = AlignedBytes(geometry_.segment_elements() * size_of(accumulator_));
  for (const Strand& strand : strands_) {
    Lane& lane = workspace->lanes.emplace_back();
    lane.messages.resize(strand.most_moves);
    lane.scratch = AlignedBytes(strand.scratch_bytes);
  }
  workspace->contributions.resize(static_cast<std::size_t>(ranks_));
  return workspace;
}

void Plan::give_back(std::unique_ptr<Workspace> workspace) {
  const std::scoped_lock lock(pool_mutex_);
  pool_.push_back(std::move(workspace));
}

}  // namespace tutti::engine
