#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tutti::model {

enum class Loss : std::uint8_t { cross_entropy, squared };
std::string_view name_of(Loss loss) noexcept;
/// Throws InvalidArgument that lists the names.
Loss loss_from(std::string_view name);

/// Sums over the samples of a batch, not means: ranks add theirs up and divide once.
struct BatchResult {
  double loss = 0;
  std::size_t correct = 0;  ///< samples whose largest output is that of their label
};

/// Softmax cross-entropy of logits (batch × classes). Unless it is empty, output_gradient becomes scale *
/// d(loss)/d(logits).
template <class T>
BatchResult cross_entropy(std::span<const T> logits, std::span<const std::uint32_t> labels,
                          std::size_t classes, T scale, std::span<T> output_gradient);

/// Half the squared distance of outputs and targets (both batch × width). Unless it is empty, output_gradient
/// becomes scale * (output - target).
template <class T>
double squared(std::span<const T> outputs, std::span<const T> targets, T scale, std::span<T> output_gradient);

/// Samples whose largest output is that of their label.
template <class T>
std::size_t count_correct(std::span<const T> outputs, std::span<const std::uint32_t> labels,
                          std::size_t classes);

}  // namespace tutti::model
