#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/types.hpp"

namespace tutti::schedule {

/// What a collective promises: which blocks hold what on which rank, at the start and at the end.
enum class Collective : std::uint8_t { allreduce, reduce_scatter, allgather, broadcast, reduce };
inline constexpr std::size_t collective_count = 5;
std::string_view name_of(Collective collective) noexcept;

/// Half-open range of equal blocks of the buffer.
struct Block {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(Block, Block) = default;

  std::uint32_t size() const { return last - first; }
};

enum class Kind : std::uint8_t {
  send,          ///< the blocks as they were before the round
  recv,          ///< overwrites the blocks (with a value that is final)
  recv_reduce,   ///< block = block op received
  recv_slot,     ///< keeps the peer's contribution apart; the peer sends its own, untouched input
  reduce_slots,  ///< at the end of the round: block = all contributions, own input and every slot, in
                 ///< canonical order
};
std::string_view name_of(Kind kind) noexcept;

/// One thing a rank does. Strands are independent programs of one rank: ordered inside, free of each other.
struct Step {
  Kind kind = Kind::send;
  std::uint8_t strand = 0;
  Rank peer = -1;  ///< unused by reduce_slots
  Block blocks;
  friend bool operator==(const Step&, const Step&) = default;
};

static_assert(sizeof(Step) == 16);

/// All that a generator may look at.
struct Shape {
  Rank ranks = 1;
  Rank rank = 0;
  std::uint32_t radix = 2;
  Rank root = 0;  ///< of broadcast and reduce
};

/// Takes the steps of one round. Reused between rounds: no allocation once it has grown.
class Sink {
 public:
  void send(Rank peer, Block blocks) { add(Kind::send, peer, blocks); }

  void recv(Rank peer, Block blocks) { add(Kind::recv, peer, blocks); }

  void recv_reduce(Rank peer, Block blocks) { add(Kind::recv_reduce, peer, blocks); }

  void recv_slot(Rank peer, Block blocks) { add(Kind::recv_slot, peer, blocks); }

  void reduce_slots(Block blocks) { add(Kind::reduce_slots, -1, blocks); }

  /// Empty ranges are dropped: a generator need not test for them.
  void add(Kind kind, Rank peer, Block blocks) {
    if (blocks.first < blocks.last) steps_.push_back({kind, strand_, peer, blocks});
  }

  void begin(std::uint32_t strand) {
    steps_.clear();
    strand_ = static_cast<std::uint8_t>(strand);
  }

  std::span<const Step> steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
  std::uint8_t strand_ = 0;
};

/// One row of the table: a collective algorithm, generated round by round, in any order, without state.
///
/// Round semantics: within a round of one strand all sends read the values from before the round; blocks
/// received in one round are disjoint (slots apart). Strands touch disjoint blocks. Blocks: for allreduce,
/// broadcast and reduce any number of equal blocks of the buffer (the last may be shorter, or empty); for
/// reduce_scatter and allgather block r belongs to rank r, and blocks() is ranks.
struct Algorithm {
  Collective collective;
  std::string_view name;
  std::string_view source;                 ///< paper and section
  std::span<const std::uint32_t> radices;  ///< that `verify` proves; {2} where radix means nothing
  bool (*accepts)(Shape);
  std::uint32_t (*blocks)(Shape);
  std::uint32_t (*strands)(Shape);
  std::uint32_t (*rounds)(Shape, std::uint32_t strand);  ///< of this rank; ranks may differ
  void (*emit)(Shape, std::uint32_t strand, std::uint32_t round, Sink&);
};

/// Contributions are added, not only moved.
constexpr bool adds(Collective collective) {
  return collective != Collective::allgather && collective != Collective::broadcast;
}

/// Every algorithm: the only registration point.
std::span<const Algorithm> algorithms();
/// nullptr if there is none of this name for this collective.
const Algorithm* find(Collective collective, std::string_view name);
/// Throws InvalidArgument that lists the known ones if there is none of this name.
const Algorithm& require_algorithm(Collective collective, std::string_view name);

/// A schedule for one rank count: a generator's (see Generated), or, in tests, a stored and mutated one.
class Schedule {
 public:
  Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  virtual ~Schedule() = default;

  virtual Collective collective() const = 0;
  virtual Rank ranks() const = 0;
  virtual Rank root() const = 0;
  virtual std::uint32_t blocks() const = 0;
  virtual std::uint32_t strands() const = 0;
  virtual std::uint32_t rounds(Rank rank, std::uint32_t strand) const = 0;
  /// Fills the sink (begin() included) with this rank's steps of a round.
  virtual void emit(Rank rank, std::uint32_t strand, std::uint32_t round, Sink& sink) const = 0;
};

class Generated final : public Schedule {
 public:
  /// Throws InvalidArgument if the algorithm does not accept the shape. `algorithm` must outlive the object.
  Generated(const Algorithm& algorithm, Rank ranks, Rank root = 0, std::uint32_t radix = 2);

  Collective collective() const override { return algorithm_.collective; }

  Rank ranks() const override { return shape_.ranks; }

  Rank root() const override { return shape_.root; }

  std::uint32_t blocks() const override { return blocks_; }

  std::uint32_t strands() const override { return strands_; }

  std::uint32_t rounds(Rank rank, std::uint32_t strand) const override;
  void emit(Rank rank, std::uint32_t strand, std::uint32_t round, Sink& sink) const override;

 private:
  const Algorithm& algorithm_;
  Shape shape_;
  std::uint32_t blocks_;
  std::uint32_t strands_;
};

/// What was proved of a schedule.
struct Verdict {
  bool correct = false;  ///< it ends (every send completed only together with its receive), and every rank
                         ///< holds what the collective promises
  bool agrees = false;  ///< every rank that holds a block holds it with the same addition tree: the same bits
  bool canonical = false;  ///< and that tree is the canonical one
  std::uint64_t steps = 0;
  std::string first_defect;  ///< names rank, strand, round, peer and blocks; empty if correct
};

Verdict check(const Schedule& schedule);
Verdict check(const Algorithm& algorithm, Rank ranks, Rank root = 0, std::uint32_t radix = 2);

}  // namespace tutti::schedule
