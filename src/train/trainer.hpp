#pragma once

#include <functional>

#include "base/clock.hpp"
#include "train/options.hpp"
#include "train/reporter.hpp"
#include "tutti/communicator.hpp"

namespace tutti::train {

/// What training gets from outside.
struct Surroundings {
  const base::Clock& clock;
  Reporter& reporter;
  std::function<bool()>
      stop_requested;  ///< asked once a step on every rank; a yes of any rank stops all after the same step
};

/// Collective. Trains with synchronous data parallelism: every rank computes the gradient of its part of the
/// global batch, allreduce sums them up in canonical order, every rank takes the same step. Ends with all
/// replicas compared. Throws base::AgreedError, on every rank, for anything that is wrong with options, data,
/// files or numbers.
Summary train(Communicator& world, const TrainOptions& options, const Surroundings& surroundings);

/// Collective. Hash of the parameters if it is the same on every rank; otherwise AgreedError that names the
/// ranks that differ from rank 0.
std::uint64_t verify_replicas(Communicator& world, std::span<const float> parameters);

}  // namespace tutti::train
