#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti::train {

/// One epoch, as all ranks together saw it.
struct EpochMetrics {
  std::size_t epoch = 0;  ///< from 1
  std::size_t step = 0;
  double train_loss = 0;      ///< mean over the samples of the epoch
  double train_accuracy = 0;  ///< 0..1; classification only
  double test_loss = 0;
  double test_accuracy = 0;
  double rate = 0;
  double step_seconds = 0;   ///< median of this rank
  double communication = 0;  ///< part of the step time spent in the gradients' allreduce, waiting included
  double samples_per_second = 0;
};

struct Summary {
  std::size_t steps = 0;
  std::size_t ranks = 1;
  std::size_t parameters = 0;
  double seconds = 0;
  EpochMetrics last;
  bool classification = true;
  std::uint64_t replica_hash = 0;  ///< the same on all ranks, or training has failed
  bool stopped = false;            ///< by SIGTERM, before the last step
  std::string checkpoint;          ///< paths; empty if not written
  std::string metrics;
};

/// Told of everything that happens; rank 0 has one that prints, the others one that does nothing.
class Reporter {
 public:
  Reporter() = default;
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  virtual ~Reporter() = default;

  virtual void started(const std::string& /*description*/) {}

  virtual void step(std::size_t /*done*/, std::size_t /*all*/) {}

  virtual void epoch(const EpochMetrics& /*metrics*/, std::size_t /*epochs*/, bool /*classification*/) {}

  virtual void finished(const Summary& /*summary*/) {}
};

/// The summary as a table for people.
std::string table_of(const Summary& summary);
/// One line of metrics as JSON.
std::string json_of(const EpochMetrics& metrics, bool classification);
std::string json_of(const Summary& summary);

}  // namespace tutti::train
