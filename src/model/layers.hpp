#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "model/layer.hpp"

namespace tutti::model {

enum class Activation : std::uint8_t { relu, tanh };
std::string_view name_of(Activation activation) noexcept;
/// Throws InvalidArgument that lists the names.
Activation activation_from(std::string_view name);

/// y = x Wᵀ + b; W is outputs × inputs, row-major. Initial weights: He (normal, variance 2 / inputs) before
/// ReLU, Glorot (normal, variance 2 / (inputs + outputs)) otherwise; biases 0.
enum class Initial : std::uint8_t { he, glorot };
template <class T>
std::unique_ptr<Layer<T>> make_dense(std::size_t inputs, std::size_t outputs, Initial initial);

/// Element by element.
template <class T>
std::unique_ptr<Layer<T>> make_activation(std::size_t width, Activation activation);

}  // namespace tutti::model
