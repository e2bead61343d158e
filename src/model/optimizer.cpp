#include "model/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"

namespace tutti::model {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, std::size_t count) : options_(options), velocity_(count, 0.0F) {}

  std::string_view name() const override { return "sgd"; }

  void apply(std::span<float> parameters, std::span<const float> gradient, float rate, std::size_t) override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      velocity_[i] = options_.momentum * velocity_[i] + (gradient[i] + options_.weight_decay * parameters[i]);
      parameters[i] -= rate * velocity_[i];
    }
  }

  std::vector<StateArray> state() override { return {{"velocity", velocity_}}; }

 private:
  OptimizerOptions options_;
  std::vector<float> velocity_;
};

class Adam final : public Optimizer {
 public:
  Adam(const OptimizerOptions& options, std::size_t count)
      : options_(options), first_(count, 0.0F), second_(count, 0.0F) {}

  std::string_view name() const override { return "adam"; }

  void apply(std::span<float> parameters, std::span<const float> gradient, float rate,
             std::size_t step) override {
    const auto t = static_cast<double>(step);
    const auto correct1 = static_cast<float>(1 - std::pow(static_cast<double>(options_.beta1), t));
    const auto correct2 = static_cast<float>(1 - std::pow(static_cast<double>(options_.beta2), t));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const float g = gradient[i] + options_.weight_decay * parameters[i];
      first_[i] = options_.beta1 * first_[i] + (1 - options_.beta1) * g;
      second_[i] = options_.beta2 * second_[i] + (1 - options_.beta2) * g * g;
      parameters[i] -= rate * (first_[i] / correct1) / (std::sqrt(second_[i] / correct2) + options_.epsilon);
    }
  }

  std::vector<StateArray> state() override { return {{"first_moment", first_}, {"second_moment", second_}}; }

 private:
  OptimizerOptions options_;
  std::vector<float> first_;
  std::vector<float> second_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, std::size_t parameter_count) {
  const auto part = [](float value, std::string_view what) {
    base::require(value >= 0 && value < 1, "{} is {}; it must be at least 0 and below 1", what, value);
  };
  part(options.momentum, "momentum");
  part(options.beta1, "beta1");
  part(options.beta2, "beta2");
  base::require(options.weight_decay >= 0 && std::isfinite(options.weight_decay),
                "weight decay is {}; it must be 0 or more", options.weight_decay);
  if (options.name == "sgd") return std::make_unique<Sgd>(options, parameter_count);
  if (options.name == "adam") return std::make_unique<Adam>(options, parameter_count);
  base::fail<InvalidArgument>("unknown optimizer '{}'; known are sgd, adam", options.name);
}

std::string_view name_of(RateKind kind) noexcept {
  if (kind == RateKind::constant) return "constant";
  return kind == RateKind::step ? "step" : "cosine";
}

RateKind rate_kind_from(std::string_view name) {
  if (name == "constant") return RateKind::constant;
  if (name == "step") return RateKind::step;
  if (name == "cosine") return RateKind::cosine;
  base::fail<InvalidArgument>("unknown learning rate schedule '{}'; known are constant, step, cosine", name);
}

float RateSchedule::at(std::size_t step) const {
  if (step <= warmup_steps && warmup_steps > 0)
    return base * static_cast<float>(step) / static_cast<float>(warmup_steps);
  const std::size_t length = std::max<std::size_t>(1, total_steps - std::min(total_steps, warmup_steps));
  const double progress =
      std::min(1.0, static_cast<double>(step - warmup_steps - 1) / static_cast<double>(length));
  switch (kind) {
    case RateKind::constant: break;
    case RateKind::step:
      return base * std::pow(factor, static_cast<float>(std::floor(progress / every + 1e-9)));
    case RateKind::cosine:
      return base * static_cast<float>(0.5 * (1 + std::cos(std::numbers::pi * progress)));
  }
  return base;
}

}  // namespace tutti::model
