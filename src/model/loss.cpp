#include "model/loss.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"

namespace tutti::model {
namespace {

constexpr std::array<std::string_view, 2> names{"cross_entropy", "squared"};

}  // namespace

std::string_view name_of(Loss loss) noexcept {
  return names[static_cast<std::size_t>(loss)];
}

Loss loss_from(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Loss>(i);
  }
  base::fail<InvalidArgument>("unknown loss '{}'; known are {}", name, fmt::join(names, ", "));
}

template <class T>
std::size_t count_correct(std::span<const T> outputs, std::span<const std::uint32_t> labels,
                          std::size_t classes) {
  std::size_t correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = outputs.subspan(i * classes, classes);
    correct +=
        std::max_element(row.begin(), row.end()) - row.begin() == static_cast<std::ptrdiff_t>(labels[i]) ? 1
                                                                                                         : 0;
  }
  return correct;
}

template <class T>
BatchResult cross_entropy(std::span<const T> logits, std::span<const std::uint32_t> labels,
                          std::size_t classes, T scale, std::span<T> output_gradient) {
  BatchResult result{.correct = count_correct(logits, labels, classes)};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = logits.subspan(i * classes, classes);
    const T highest = *std::max_element(row.begin(), row.end());  // subtracted: no exponential can overflow
    T total = 0;
    for (const T logit : row) total += std::exp(logit - highest);
    result.loss += std::log(static_cast<double>(total)) - static_cast<double>(row[labels[i]] - highest);
    if (output_gradient.empty()) continue;
    for (std::size_t c = 0; c < classes; ++c) {
      const T probability = std::exp(row[c] - highest) / total;
      output_gradient[i * classes + c] = scale * (probability - (c == labels[i] ? T{1} : T{0}));
    }
  }
  return result;
}

template <class T>
double squared(std::span<const T> outputs, std::span<const T> targets, T scale,
               std::span<T> output_gradient) {
  double loss = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const T difference = outputs[i] - targets[i];
    loss += 0.5 * static_cast<double>(difference) * static_cast<double>(difference);
    if (!output_gradient.empty()) output_gradient[i] = scale * difference;
  }
  return loss;
}

template std::size_t count_correct<float>(std::span<const float>, std::span<const std::uint32_t>,
                                          std::size_t);
template std::size_t count_correct<double>(std::span<const double>, std::span<const std::uint32_t>,
                                           std::size_t);
template BatchResult cross_entropy<float>(std::span<const float>, std::span<const std::uint32_t>, std::size_t,
                                          float, std::span<float>);
template BatchResult cross_entropy<double>(std::span<const double>, std::span<const std::uint32_t>,
                                           std::size_t, double, std::span<double>);
template double squared<float>(std::span<const float>, std::span<const float>, float, std::span<float>);
template double squared<double>(std::span<const double>, std::span<const double>, double, std::span<double>);

}  // namespace tutti::model
