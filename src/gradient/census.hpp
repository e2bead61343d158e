#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/communicator.hpp"
#include "tutti/reducer.hpp"

namespace tutti::gradient {

/// Who takes part in a step, and who has which gradient.
class Census {
 public:
  /// `join`: ranks may be without data.
  Census(Communicator& communicator, std::vector<std::string> parameters, Missing missing, bool join);

  /// Starts to count the ranks that have data, beside everything else; once in a step, on all ranks before
  /// anything else starts. Nothing unless `join`.
  void announce(bool live);
  /// Waits for the number of ranks that have data: all unless `join`.
  Rank count();

  /// The next announcement is of another step.
  void end_step() { announced_ = false; }

  Rank live() const { return live_; }

  /// Collective, after all buckets have started. `had`: by parameter, whether this rank had a gradient;
  /// `gets`: or still sends something. An error waits until the step is over, see complain(): what is on its
  /// way must come to its end on all ranks.
  void agree(const std::vector<std::uint8_t>& had, std::vector<std::uint8_t> gets);

  bool anywhere(std::size_t parameter) const { return anywhere_.at(parameter) != 0; }

  /// Throws InvalidArgument, on all ranks, with the names of what is missing where that is an error.
  void complain();

 private:
  Communicator& communicator_;
  std::vector<std::string> parameters_;
  Missing missing_;
  bool join_;
  bool announced_ = false;
  Rank live_;
  std::vector<std::uint8_t> anywhere_;
  std::string complaint_;
  std::unique_ptr<std::int32_t> counted_;  ///< its place stays when the Reducer moves
  Work work_;
};

}  // namespace tutti::gradient
