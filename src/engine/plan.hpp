#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/geometry.hpp"
#include "engine/request.hpp"
#include "schedule/schedule.hpp"

namespace tutti::engine {

/// Which memory a block is in. `partial` belongs to the plan: accumulator type, one segment.
enum class Place : std::uint8_t { input, output, partial };

/// What a block holds. A final value is rounded to the element type; a partial sum is in the accumulator
/// type.
enum class State : std::uint8_t { absent, input, partial, final };

/// A run of blocks that are in the same state and place, before and after a step.
struct Piece {
  schedule::Block blocks;
  State state = State::absent;
  Place from = Place::input;
  bool becomes_final = false;
  Place to = Place::output;
};

/// One message of a rank, or a reduce_slots, with all decisions made that do not depend on the segment.
struct Move {
  schedule::Kind kind = schedule::Kind::send;
  DType wire = DType::f32;
  bool staged = false;  ///< goes through scratch memory; otherwise straight from or into its place
  bool after_sends =
      false;             ///< what it writes is being sent in this round: applied when those sends are done
  bool opening = false;  ///< the first message with this peer, in this direction, of the strand
  Rank peer = -1;
  schedule::Block blocks;
  std::uint32_t first_piece = 0;
  std::uint32_t pieces = 0;
  std::size_t scratch = 0;  ///< byte offset in the strand's scratch memory (of all slots, for reduce_slots)
};

/// The moves of a round: receives, then sends, then reduce_slots.
struct Round {
  std::uint32_t first = 0;
  std::uint32_t sends = 0;
  std::uint32_t slots = 0;
  std::uint32_t last = 0;
};

struct Strand {
  std::vector<Round> rounds;
  std::size_t scratch_bytes = 0;
  std::uint32_t most_moves = 0;  ///< of any round
};

/// Memory of one segment in flight, used again by later segments and operations.
struct Workspace;

/// A schedule compiled for (this rank, count, element type, op): no allocation and no virtual call per step
/// when it runs. Immutable but for its pool of workspaces.
class Plan {
 public:
  /// Throws Error if the schedule breaks the rules of schedule.hpp in a way that cannot be executed.
  Plan(const schedule::Schedule& schedule, const Request& request, Rank rank, std::uint64_t segment_bytes,
       std::uint32_t in_flight);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan();

  const Geometry& geometry() const { return geometry_; }

  /// Segments that may be on their way at a time.
  std::uint32_t in_flight() const { return in_flight_; }

  std::span<const Strand> strands() const { return strands_; }

  std::span<const Move> moves(const Round& round) const {
    return std::span(moves_).subspan(round.first, round.last - round.first);
  }

  std::span<const Piece> pieces(const Move& move) const {
    return std::span(pieces_).subspan(move.first_piece, move.pieces);
  }

  /// Blocks that no step writes although the rank must hold them at the end: copied from the input.
  std::span<const Piece> untouched() const { return untouched_; }

  DType type() const { return type_; }

  DType accumulator() const { return accumulator_; }

  /// Element type of an untouched contribution: the accumulator if it was scaled first.
  DType contribution() const { return scaled_ ? accumulator_ : type_; }

  bool scaled() const { return scaled_; }

  double prescale() const { return prescale_; }

  Op op() const { return op_; }

  Rank ranks() const { return ranks_; }

  Rank rank() const { return rank_; }

  schedule::Collective collective() const { return collective_; }

  /// Divisor of the last addition: contributors for averages, 0 otherwise.
  std::uint64_t divisor() const { return op_ == Op::average ? contributors_ : 0; }

  std::unique_ptr<Workspace> take_workspace();
  void give_back(std::unique_ptr<Workspace> workspace);

 private:
  friend class PlanCompiler;

  schedule::Collective collective_;
  Op op_;
  DType type_;
  DType accumulator_;
  bool scaled_;
  double prescale_;
  std::uint64_t contributors_;
  Rank ranks_;
  Rank rank_;
  Geometry geometry_;
  std::uint32_t in_flight_;
  std::vector<Strand> strands_;
  std::vector<Move> moves_;
  std::vector<Piece> pieces_;
  std::vector<Piece> untouched_;
  bool needs_partial_ = false;
  std::mutex pool_mutex_;
  std::vector<std::unique_ptr<Workspace>> pool_;
};

}  // namespace tutti::engine
