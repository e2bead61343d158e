#include "train/reporter.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tutti::train {

std::string table_of(const Summary& summary) {
  std::string text = fmt::format("\n{:<24}{}\n", "ranks", summary.ranks);
  const auto row = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<24}{}\n", name, value);
  };
  row("steps", fmt::format("{}{}", summary.steps, summary.stopped ? " (stopped by a signal)" : ""));
  row("parameters", fmt::format("{}", summary.parameters));
  row("training loss", fmt::format("{:.4f}", summary.last.train_loss));
  if (summary.classification) {
    row("test accuracy", fmt::format("{:.2f} %", 100 * summary.last.test_accuracy));
  } else {
    row("test loss", fmt::format("{:.4f}", summary.last.test_loss));
  }
  row("training time", fmt::format("{:.2f} s", summary.seconds));
  row("step time (median)", fmt::format("{:.3f} ms", 1e3 * summary.last.step_seconds));
  row("of it communication", fmt::format("{:.0f} %", 100 * summary.last.communication));
  row("replicas", fmt::format("bit-identical on {} rank{}, hash {:016x}", summary.ranks,
                              summary.ranks == 1 ? "" : "s", summary.replica_hash));
  row("checkpoint", summary.checkpoint.empty() ? "not written" : summary.checkpoint);
  row("metrics", summary.metrics.empty() ? "not written" : summary.metrics);
  return text;
}

std::string json_of(const EpochMetrics& metrics, bool classification) {
  nlohmann::ordered_json json{{"event", "epoch"},
                              {"epoch", metrics.epoch},
                              {"step", metrics.step},
                              {"train_loss", metrics.train_loss}};
  if (classification) json["train_accuracy"] = metrics.train_accuracy;
  json["test_loss"] = metrics.test_loss;
  if (classification) json["test_accuracy"] = metrics.test_accuracy;
  json["learning_rate"] = metrics.rate;
  json["step_seconds"] = metrics.step_seconds;
  json["communication_part"] = metrics.communication;
  json["samples_per_second"] = metrics.samples_per_second;
  return json.dump();
}

std::string json_of(const Summary& summary) {
  nlohmann::ordered_json json{{"event", "summary"},
                              {"ranks", summary.ranks},
                              {"steps", summary.steps},
                              {"parameters", summary.parameters},
                              {"seconds", summary.seconds},
                              {"train_loss", summary.last.train_loss},
                              {"test_loss", summary.last.test_loss}};
  if (summary.classification) json["test_accuracy"] = summary.last.test_accuracy;
  json["replica_hash"] = fmt::format("{:016x}", summary.replica_hash);
  json["stopped"] = summary.stopped;
  json["checkpoint"] = summary.checkpoint;
  return json.dump();
}

}  // namespace tutti::train
