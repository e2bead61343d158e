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

/// Of square kernels at every place of images, which lie channel by channel, row by row. Output images are
/// height + 2 · padding + 1 - kernel high; weights are filters × (channels · kernel · kernel), row-major.
struct ConvolutionShape {
  std::size_t channels = 1;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t filters = 0;
  std::size_t kernel = 5;
  std::size_t padding = 0;  ///< zeros around an image
};

/// Initial weights as of a dense layer on one patch. Throws InvalidArgument if the kernel is larger than the
/// padded image.
template <class T>
std::unique_ptr<Layer<T>> make_convolution(const ConvolutionShape& shape, Initial initial);

/// The largest of each 2 × 2 pixels; a last odd row or column is left out.
template <class T>
std::unique_ptr<Layer<T>> make_max_pooling(std::size_t channels, std::size_t height, std::size_t width);

/// Element by element.
template <class T>
std::unique_ptr<Layer<T>> make_activation(std::size_t width, Activation activation);

}  // namespace tutti::model
