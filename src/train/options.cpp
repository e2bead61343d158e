#include "train/options.hpp"

#include <fmt/format.h>

namespace tutti::train {

std::vector<std::pair<std::string, std::string>> described(const TrainOptions& o) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  return {
      {"--data", o.data.source},
      {"--split-seed", text(o.data.split_seed)},
      {"--test-part", text(o.data.test_part)},
      {"--label-column", o.data.label_column},
      {"--standardize", text(o.data.standardize)},
      {"--model", o.lenet ? std::string("lenet") : fmt::format("{}", fmt::join(o.hidden, ","))},
      {"--activation", std::string(model::name_of(o.activation))},
      {"--loss", std::string(model::name_of(o.loss))},
      {"--optimizer", o.optimizer.name},
      {"--momentum", text(o.optimizer.momentum)},
      {"--beta1", text(o.optimizer.beta1)},
      {"--beta2", text(o.optimizer.beta2)},
      {"--weight-decay", text(o.optimizer.weight_decay)},
      {"--schedule", std::string(model::name_of(o.rate_kind))},
      {"--lr", text(o.rate)},
      {"--warmup", text(o.warmup_steps)},
      {"--batch", text(o.batch)},
      {"--epochs", text(o.epochs)},
      {"--steps", text(o.steps)},
      {"--seed", text(o.seed)},
      {"--algorithm", o.algorithm},
      {"--bucket", text(o.bucket_bytes)},
      {"--first-bucket", text(o.first_bucket_bytes)},
      {"--codec", o.codec},
      {"--order", o.order},
      {"--output", o.output},
      {"--checkpoint-every", text(o.checkpoint_every)},
      {"--resume", o.resume},
      {"--log-every", text(o.log_every)},
      {"--step-log", text(o.step_log)},
      {"--verify-replicas", text(o.verify_replicas)},
  };
}

}  // namespace tutti::train
