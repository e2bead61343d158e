#include "engine/runner.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "engine/signature.hpp"
#include "kernel/kernel.hpp"

namespace tutti::engine {

using schedule::Block;
using schedule::Collective;
using schedule::Kind;
using Status = Lane::Message::Status;

namespace {

constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

}  // namespace

ScheduleOperation::ScheduleOperation(std::shared_ptr<Plan> plan, const Request& request, Lookout& lookout,
                                     std::uint32_t sequence)
    : plan_(std::move(plan)),
      input_(static_cast<const std::byte*>(request.input)),
      output_(static_cast<std::byte*>(request.output)),
      transport_(lookout.transport()),
      lookout_(lookout),
      sequence_(sequence),
      signature_(lookout.calls().at(sequence)) {
  const auto window =
      std::min<std::uint64_t>({plan_->in_flight(), plan_->geometry().segments(), transport::segment_window});
  segments_.resize(window);
  for (Segment& segment : segments_) segment.index = none;
}

ScheduleOperation::~ScheduleOperation() {
  for (Segment& segment : segments_) {
    if (!segment.workspace) continue;
    if (segment.index != none) cancel(segment);
    if (segment.workspace) plan_->give_back(std::move(segment.workspace));
  }
}

void ScheduleOperation::cancel(Segment& segment) noexcept {
  bool free = true;
  for (Lane& lane : segment.workspace->lanes) {
    for (Lane::Message& message : lane.messages) {
      if (message.status == Status::open && !transport_.cancel(message.ticket)) free = false;
      message.status = Status::done;
    }
  }
  if (!free) transport_.park(std::shared_ptr<Workspace>(std::move(segment.workspace)));
}

Turn ScheduleOperation::advance() {
  using Notice = transport::Notice;
  try {
    const Turn result = turn();
    if (result != Turn::idle) next_inquiry_ = Lookout::first_inquiry;
    return result;
  } catch (const transport::ForeignOperation& error) {
    lookout_.end(Notice::Kind::mismatch, sequence_,
                 fmt::format("{}: {} called {}; {}", label(), transport_.describe(error.peer),
                             difference(signature_, error.found), same_everywhere));
  } catch (const MismatchError& error) {
    lookout_.end(Notice::Kind::mismatch, sequence_, fmt::format("{}: {}", label(), error.what()));
  } catch (const PeerLostError& error) {
    lookout_.end(Notice::Kind::peer_lost, sequence_, fmt::format("{}: {}", label(), error.what()));
  } catch (const std::exception& error) {
    // Of this rank alone, memory for example: here it is what it is, elsewhere a lost peer.
    lookout_.tell(Notice::Kind::peer_lost, sequence_, fmt::format("{}: {}", label(), error.what()));
    throw;
  }
}

void ScheduleOperation::look_around(Seconds idle) {
  lookout_.look(sequence_, idle, next_inquiry_, [this] { return describe(); });
}

void ScheduleOperation::abandon(const std::string& reason) noexcept {
  lookout_.tell(transport::Notice::Kind::timeout, sequence_, reason);
}

Turn ScheduleOperation::turn() {
  bool moved = start_segments();
  for (Segment& segment : segments_) {
    if (segment.index != none && advance(segment)) moved = true;
  }
  if (moved) start_segments();
  const bool busy =
      std::any_of(segments_.begin(), segments_.end(), [](const Segment& s) { return s.index != none; });
  if (!busy && next_segment_ == plan_->geometry().segments()) return Turn::done;
  return moved ? Turn::moved : Turn::idle;
}

bool ScheduleOperation::start_segments() {
  bool started = false;
  std::uint64_t oldest = next_segment_;
  for (const Segment& segment : segments_) oldest = std::min(oldest, segment.index);
  for (Segment& segment : segments_) {
    // Tags repeat after segment_window segments: a slow segment holds the others back before theirs could be
    // its own.
    if (next_segment_ == plan_->geometry().segments() || next_segment_ - oldest >= transport::segment_window)
      break;
    if (segment.index != none) continue;
    segment.index = next_segment_++;
    start(segment);
    started = true;
  }
  return started;
}

void ScheduleOperation::start(Segment& segment) {
  if (!segment.workspace) segment.workspace = plan_->take_workspace();
  if (plan_->scaled()) scale_input(segment);
  if (plan_->collective() == Collective::allgather) copy_own_block(segment);
  segment.open_strands = 0;
  for (std::size_t s = 0; s < segment.workspace->lanes.size(); ++s) {
    Lane& lane = segment.workspace->lanes[s];
    lane.round = 0;
    lane.posted = false;
    if (!plan_->strands()[s].rounds.empty()) ++segment.open_strands;
  }
  if (segment.open_strands == 0) finish(segment);
}

void ScheduleOperation::scale_input(Segment& segment) {
  // Block by block where a segment is a part of every block; all at once otherwise.
  const std::uint32_t blocks = plan_->geometry().blocks();
  const std::uint32_t step = plan_->geometry().runs_are_contiguous() ? blocks : 1;
  for (std::uint32_t first = 0; first < blocks; first += step) {
    const Block run{first, first + step};
    kernel::scale(plan_->type(), plan_->op(), {at(segment, Place::partial, run), plan_->accumulator()},
                  {at(segment, Place::input, run), plan_->type()}, elements(segment, run), plan_->prescale());
  }
}

void ScheduleOperation::copy_own_block(const Segment& segment) {
  const auto own = static_cast<std::uint32_t>(plan_->rank());
  const Block block{own, own + 1};
  const std::byte* from = at(segment, Place::input, block);
  std::byte* to = at(segment, Place::output, block);
  if (from != to) kernel::copy(to, from, elements(segment, block) * size_of(plan_->type()));
}

void ScheduleOperation::finish(Segment& segment) {
  for (const Piece& piece : plan_->untouched()) {
    std::byte* to = at(segment, Place::output, piece.blocks);
    const std::byte* from = at(segment, piece.from, piece.blocks);
    if (from == to) continue;
    kernel::convert(plan_->type(), plan_->op(), {to, plan_->type()}, {from, plan_->contribution()},
                    elements(segment, piece.blocks));
  }
  segment.index = none;
}

bool ScheduleOperation::advance(Segment& segment) {
  bool moved = false;
  for (std::uint32_t s = 0; s < plan_->strands().size(); ++s) {
    if (advance(segment, s)) moved = true;
    if (segment.index == none) break;
  }
  return moved;
}

bool ScheduleOperation::advance(Segment& segment, std::uint32_t s) {
  const Strand& strand = plan_->strands()[s];
  Lane& lane = segment.workspace->lanes[s];
  bool moved = false;
  while (lane.round < strand.rounds.size()) {
    const Round& round = strand.rounds[lane.round];
    if (!lane.posted) {
      post(segment, lane, round, s);
      moved = true;
    }
    bool complete = false;
    if (poll(segment, lane, round)) moved = true;
    complete = std::all_of(lane.messages.begin(), lane.messages.begin() + (round.slots - round.first),
                           [](const Lane::Message& message) { return message.status == Status::done; });
    if (!complete) return moved;
    for (std::uint32_t m = round.slots; m < round.last; ++m)
      reduce_slots(segment, lane, plan_->moves(round)[m - round.first]);
    lane.posted = false;
    ++lane.round;
    if (lane.round == strand.rounds.size() && --segment.open_strands == 0) {
      finish(segment);
      return true;
    }
  }
  return moved;
}

void ScheduleOperation::post(Segment& segment, Lane& lane, const Round& round, std::uint32_t strand) {
  const auto moves = plan_->moves(round);
  const transport::Tag tag{sequence_, static_cast<std::uint32_t>(segment.index),
                           static_cast<std::uint8_t>(strand)};
  lane.open_sends = 0;
  const std::uint32_t messages = round.slots - round.first;
  for (std::uint32_t m = 0; m < messages; ++m) lane.messages[m].status = Status::done;
  // What is copied aside to be sent comes first: a receive may write there as soon as it is posted.
  for (std::uint32_t m = 0; m < messages; ++m) {
    if (moves[m].kind == Kind::send && moves[m].staged)
      post_one(segment, lane, moves[m], lane.messages[m], tag);
  }
  for (std::uint32_t m = 0; m < messages; ++m) {
    if (moves[m].kind != Kind::send || !moves[m].staged)
      post_one(segment, lane, moves[m], lane.messages[m], tag);
  }
  lane.posted = true;
}

void ScheduleOperation::post_one(Segment& segment, Lane& lane, const Move& move, Lane::Message& message,
                                 transport::Tag tag) {
  const std::size_t count = elements(segment, move.blocks);
  if (count == 0 && !move.opening) return;
  const transport::Signature* opening = move.opening ? &signature_ : nullptr;
  const std::size_t bytes = count * size_of(move.wire);
  std::byte* scratch = lane.scratch.data() + move.scratch;
  if (move.kind == Kind::send) {
    const std::byte* from = scratch;
    if (move.staged) {
      std::byte* to = scratch;
      for (const Piece& piece : plan_->pieces(move)) {
        const std::size_t n = elements(segment, piece.blocks);
        kernel::convert(plan_->type(), plan_->op(), {to, move.wire},
                        {at(segment, piece.from, piece.blocks), type_at(piece.from, piece.state)}, n);
        to += n * size_of(move.wire);
      }
    } else {
      const Piece& piece = plan_->pieces(move).front();
      from = at(segment, piece.from, move.blocks);
    }
    message.ticket = transport_.send(move.peer, tag, opening, from, bytes);
    ++lane.open_sends;
  } else {
    void* to = move.staged ? scratch : at(segment, Place::output, move.blocks);
    message.ticket = transport_.receive(move.peer, tag, opening, to, bytes);
  }
  message.status = Status::open;
}

bool ScheduleOperation::poll(Segment& segment, Lane& lane, const Round& round) {
  bool moved = false;
  bool waiting = false;
  const auto moves = plan_->moves(round);
  // Sends first (they stand last): a receive may only wait for them.
  for (std::uint32_t m = round.slots - round.first; m-- > 0;) {
    Lane::Message& message = lane.messages[m];
    const Move& move = moves[m];
    if (message.status == Status::open) {
      // A test can be dear, and all sends must end: one that has not is enough to know. Receives are all
      // tested, as what peers send may not move before that.
      if (move.kind == Kind::send && waiting) continue;
      if (!transport_.test(message.ticket)) {
        waiting = waiting || move.kind == Kind::send;
        continue;
      }
      moved = true;
      if (move.kind == Kind::send) {
        --lane.open_sends;
        message.status = Status::done;
        continue;
      }
      message.status = Status::landed;
    }
    if (message.status == Status::landed && (!move.after_sends || lane.open_sends == 0)) {
      land(segment, lane, move);
      message.status = Status::done;
      moved = true;
    }
  }
  return moved;
}

/// What a received message does to its blocks.
void ScheduleOperation::land(const Segment& segment, Lane& lane, const Move& move) {
  const std::byte* received = lane.scratch.data() + move.scratch;
  if (move.kind == Kind::recv) {
    if (move.staged)
      kernel::copy(at(segment, Place::output, move.blocks), received,
                   elements(segment, move.blocks) * size_of(move.wire));
    return;
  }
  if (move.kind == Kind::recv_slot) return;
  for (const Piece& piece : plan_->pieces(move)) {
    const std::size_t n = elements(segment, piece.blocks);
    const DType to = piece.becomes_final ? plan_->type() : plan_->accumulator();
    kernel::reduce(plan_->op(), plan_->type(), {at(segment, piece.to, piece.blocks), to},
                   {at(segment, piece.from, piece.blocks), type_at(piece.from, piece.state)},
                   {received, move.wire}, n, piece.becomes_final ? plan_->divisor() : 0);
    received += n * size_of(move.wire);
  }
}

void ScheduleOperation::reduce_slots(Segment& segment, Lane& lane, const Move& move) {
  const std::size_t n = elements(segment, move.blocks);
  if (n == 0) return;
  const Piece& piece = plan_->pieces(move).front();
  const std::size_t stride =
      (plan_->geometry().most_elements(move.blocks) * size_of(move.wire) + 63) / 64 * 64;
  auto& contributions = segment.workspace->contributions;
  for (std::size_t r = 0; r < contributions.size(); ++r)
    contributions[r] = lane.scratch.data() + move.scratch + r * stride;
  contributions[static_cast<std::size_t>(plan_->rank())] = at(segment, piece.from, move.blocks);
  const DType to = piece.becomes_final ? plan_->type() : plan_->accumulator();
  kernel::reduce_many(plan_->op(), plan_->type(), {at(segment, piece.to, move.blocks), to}, contributions,
                      move.wire, n, piece.becomes_final ? plan_->divisor() : 0);
}

std::byte* ScheduleOperation::at(const Segment& segment, Place place, Block blocks) const {
  const Geometry& geometry = plan_->geometry();
  switch (place) {
    case Place::input:
      // Sources are only read; one pointer type for all places keeps the moves uniform.
      return const_cast<std::byte*>(input_) +
             geometry.in_input(segment.index, blocks).offset * size_of(plan_->type());
    case Place::output:
      return output_ + geometry.in_output(segment.index, blocks).offset * size_of(plan_->type());
    case Place::partial: break;
  }
  return segment.workspace->partial.data() +
         geometry.in_segment(segment.index, blocks).offset * size_of(plan_->accumulator());
}

DType ScheduleOperation::type_at(Place place, State state) const {
  return place == Place::partial || state == State::partial ? plan_->accumulator() : plan_->type();
}

std::string ScheduleOperation::label() const {
  return fmt::format("operation #{}, {}, on {}", sequence_, engine::describe(signature_),
                     transport_.describe(plan_->rank()));
}

std::string ScheduleOperation::describe() const {
  for (const Segment& segment : segments_) {
    if (segment.index == none) continue;
    for (std::size_t s = 0; s < segment.workspace->lanes.size(); ++s) {
      const Lane& lane = segment.workspace->lanes[s];
      if (!lane.posted || lane.round >= plan_->strands()[s].rounds.size()) continue;
      const auto moves = plan_->moves(plan_->strands()[s].rounds[lane.round]);
      for (std::size_t m = 0; m < moves.size(); ++m) {
        if (moves[m].kind == Kind::reduce_slots || lane.messages[m].status != Status::open) continue;
        return fmt::format(
            "{}: waits in round {} of {} (segment {} of {}) for a {} {}", label(), lane.round + 1,
            plan_->strands()[s].rounds.size(), segment.index + 1, plan_->geometry().segments(),
            moves[m].kind == Kind::send ? "send to" : "message from", transport_.describe(moves[m].peer));
      }
    }
  }
  return fmt::format("{}: waits for nothing", label());
}

}  // namespace tutti::engine
