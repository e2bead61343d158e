#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::model {

struct OptimizerOptions {
  std::string name = "sgd";  ///< sgd | adam
  float momentum = 0.9F;     ///< sgd
  float beta1 = 0.9F;        ///< adam
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 5e-4F;  ///< added to the gradient times the parameter, both kinds
};

/// A named array of the state that a checkpoint must hold.
struct StateArray {
  std::string name;
  std::span<float> values;
};

/// Applies gradients. The same bits on every rank for the same gradients.
class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;
  virtual std::string_view name() const = 0;
  /// `step` counts from 1.
  virtual void apply(std::span<float> parameters, std::span<const float> gradient, float rate,
                     std::size_t step) = 0;
  virtual std::vector<StateArray> state() = 0;
};

/// SGD with momentum: v = m v + (g + w θ), θ -= rate v.  Adam: Kingma and Ba 2015, algorithm 1, weight decay
/// as an L2 term. Throws InvalidArgument for an unknown name or a value out of range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, std::size_t parameter_count);

enum class RateKind : unsigned char { constant, step, cosine };
/// Throws InvalidArgument that lists the names.
std::string_view name_of(RateKind kind) noexcept;
RateKind rate_kind_from(std::string_view name);

/// Learning rate over steps: linear warm-up, then constant, a tenfold (`factor`) drop every `every` of the
/// run, or half a cosine to 0.
struct RateSchedule {
  RateKind kind = RateKind::constant;
  float base = 0.1F;
  std::size_t warmup_steps = 0;
  std::size_t total_steps = 1;
  float factor = 0.1F;     ///< step
  double every = 1.0 / 3;  ///< step: as a part of the run

  /// `step` counts from 1.
  float at(std::size_t step) const;
};

}  // namespace tutti::model
