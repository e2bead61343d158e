#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.hpp"
#include "model/loss.hpp"
#include "model/network.hpp"
#include "model/optimizer.hpp"
#include "tutti/communicator.hpp"

namespace tutti::train {

struct TrainOptions {
  data::SourceOptions data;
  bool lenet = false;  ///< instead of dense layers
  std::vector<std::size_t> hidden{128};
  model::Activation activation = model::Activation::relu;
  model::Loss loss = model::Loss::cross_entropy;
  model::OptimizerOptions optimizer;
  model::RateKind rate_kind = model::RateKind::cosine;
  float rate = 0.2F;
  std::size_t warmup_steps = 0;
  std::size_t batch = 64;  ///< samples of a step, over all ranks
  std::size_t epochs = 60;
  std::size_t steps = 0;  ///< 0: by epochs
  std::uint64_t seed = 1;
  std::string algorithm;                     ///< of the gradients' allreduce; empty: chosen
  std::size_t bucket_bytes = 4 << 20;        ///< of gradients that travel together
  std::size_t first_bucket_bytes = 1 << 20;  ///< of the first of a step, which starts earliest
  std::string codec;                         ///< of gradients on their way, or auto; empty: fp32
  std::string order;                         ///< canonical | any; empty: as TUTTI_ORDER says

  std::string output = "tutti-run";  ///< folder of checkpoint and metrics; empty: write nothing
  std::size_t checkpoint_every = 0;  ///< steps; 0: at the end only
  std::string resume;                ///< checkpoint to go on from
  std::size_t log_every = 1;         ///< epochs between lines of the log
  bool step_log = false;             ///< writes what every step took
  std::size_t verify_replicas = 0;   ///< steps between comparisons of all replicas; 0: at the end only
};

/// Every option that must be the same on all ranks, as (flag, value).
std::vector<std::pair<std::string, std::string>> described(const TrainOptions& options);

}  // namespace tutti::train
