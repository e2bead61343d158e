#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gradient/chooser.hpp"
#include "gradient/cost.hpp"

namespace tutti::gradient {

/// "auto", "auto:error=bounded": the error class up to which codecs may be chosen. None: `codec` names one.
/// Throws InvalidArgument if it is neither.
std::optional<compress::ErrorClass> automatic_error(std::string_view codec);

/// codec=auto: what each bucket travels as. Measures wire and codecs, lets the plans that may be fastest race
/// in real steps, and again when steps take another time than before.
///
/// A plan gives every bucket its candidate: all the same one, or to each the one that is predicted to be the
/// cheapest for it. Dense is among them unless others are predicted to be far faster.
class Automatic {
 public:
  using Journal = std::function<void(std::string_view)>;
  /// The runs of each bucket; none: it is exact.
  using Buckets = std::vector<std::vector<exchange::Run>>;

  /// `journal` gets a JSON object for every decision, on rank 0.
  Automatic(Communicator& communicator, compress::ErrorClass error, Journal journal);

  const Candidate& candidate(std::size_t index) const { return candidates_[index]; }

  /// Of each bucket, by index; 0: dense. Before start(): empty.
  const std::vector<std::size_t>& choice() const;

  /// Collective. Buckets are these from now on.
  void start(Buckets buckets, std::uint64_t step);
  /// Collective, after each step, which took so long from the end of the one before. True: the choice is
  /// another one now.
  bool after_step(double seconds, std::uint64_t step);

 private:
  struct Plan {
    std::string name;
    std::vector<std::size_t> choice;
    double predicted = 0;  ///< seconds of all buckets, one after the other
  };

  Plan uniform(std::size_t candidate) const;
  Plan cheapest() const;
  void plan(std::string_view reason, std::uint64_t step);
  void tell_plans(std::string_view reason, std::uint64_t step) const;
  void tell_choice(std::uint64_t step) const;
  int error_of(const Plan& plan) const;

  Communicator& communicator_;
  Journal journal_;
  std::vector<Candidate> candidates_;
  Buckets buckets_;
  Wire wire_;
  std::vector<Plan> plans_;
  std::optional<Chooser> chooser_;
  std::vector<std::size_t> nothing_;
};

}  // namespace tutti::gradient
