#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tutti::gradient {

/// Chooses among plans by the time that real steps take with them, in turns. Every rank has one and takes the
/// same steps with the same plan; what depends on times rank 0 decides, and tells the others.
///
/// At first plans race: each has some steps in its turn, the first of which does not count; after every round
/// the slow ones are out. Short steps differ more than long ones, in per cent: turns of them have more steps,
/// but that of a plan that is far slower than another ends early. Then the choice is kept, and looked at
/// again every `window` steps: if steps take another time than they did, twice and more, all should be
/// measured again.
class Chooser {
 public:
  struct Plan {
    int error = 0;  ///< more: loses more. 0: nothing
  };

  /// What rank 0 tells.
  struct Decision {
    std::uint64_t turn = 0;    ///< steps of a turn from now on
    std::uint64_t keep = 0;    ///< bit i: plan i is still in, or, if it is the only one, chosen
    std::uint64_t again = 0;   ///< 1: what holds for the steps has changed; measure again
    std::uint64_t window = 0;  ///< steps until the next look
  };

  static constexpr std::size_t most_plans = 64;
  static constexpr std::size_t shortest_turn = 5;
  static constexpr std::size_t longest_turn = 32;
  static constexpr std::size_t rounds = 3;

  /// `incumbent`: the plan that is to be beaten. `patience`: looks that must differ before all is measured
  /// again.
  explicit Chooser(std::vector<Plan> plans, std::optional<std::size_t> incumbent = {},
                   std::size_t patience = 2);

  /// The plan for the next step.
  std::size_t current() const { return current_; }

  bool racing() const { return racing_; }

  /// After each step, with its seconds on this rank. True: a decision is due before the next step.
  bool note(double seconds);
  /// On rank 0.
  Decision decide() const;
  /// On every rank, what rank 0 has decided.
  void apply(const Decision& decision);

  /// Median seconds of a plan's steps in the race; none: it had no turn.
  std::optional<double> measured(std::size_t plan) const;

  /// As it stood when this was made, plus the looks that differed for nothing.
  std::size_t patience() const { return patience_; }

 private:
  bool in(std::size_t plan) const { return (in_ >> plan & 1U) != 0; }

  std::size_t best() const;
  std::size_t pick() const;
  void start_round();
  void next_turn();
  /// True: it was the last one of the round.
  bool end_turn();
  bool length_due() const;
  std::uint64_t turn_for(double seconds) const;
  std::uint64_t window_for(double seconds) const;

  std::vector<Plan> plans_;
  std::optional<std::size_t> incumbent_;
  std::size_t patience_;
  std::uint64_t in_ = 0;
  bool racing_ = true;
  std::size_t current_ = 0;
  std::size_t round_ = 0;
  std::size_t step_of_turn_ = 0;
  std::uint64_t turn_ = 0;          ///< steps of this turn; 0: not yet known
  std::vector<std::size_t> turns_;  ///< of this round that are still to come, the next one last
  std::vector<std::vector<double>> seconds_;
  std::uint64_t window_ = 16;
  std::vector<double> look_;
  std::optional<double> usual_;  ///< seconds of a step since the choice
  std::size_t strikes_ = 0;
};

}  // namespace tutti::gradient
