#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/layers.hpp"

namespace tutti::model {

/// Widths of a fully connected network and the function between its dense layers; none after the last.
struct NetworkShape {
  std::size_t inputs = 0;
  std::vector<std::size_t> hidden;
  std::size_t outputs = 0;
  Activation activation = Activation::relu;
};

/// Two convolutions with pooling and three dense layers: 6 filters of 5 × 5 (padded by 2), 16 of 5 × 5, dense
/// 120, 84, outputs. The network of LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to
/// document recognition, 1998, section II.B, with all maps connected, the largest instead of the sum in
/// pooling, and no radial units: 61,706 parameters for 28 × 28 pixels and 10 classes.
struct LeNetShape {
  std::size_t height = 0;  ///< of the images, which have one channel
  std::size_t width = 0;
  std::size_t outputs = 0;
  Activation activation = Activation::relu;
};

/// Layers in a row over one flat parameter buffer. Holds the activations of the last forward pass; one thread
/// at a time.
template <class T>
class Network {
 public:
  /// Throws InvalidArgument if a width is 0.
  explicit Network(const NetworkShape& shape);
  /// Throws InvalidArgument if images are smaller than 12 × 12.
  explicit Network(const LeNetShape& shape);

  std::size_t parameter_count() const { return parameter_count_; }

  std::size_t inputs() const { return layers_.front()->inputs(); }

  std::size_t outputs() const { return layers_.back()->outputs(); }

  /// In the order of the buffer, without gaps.
  const std::vector<ParameterSpan>& spans() const { return spans_; }

  /// Fills the whole buffer; the same values for the same seed on every rank.
  void initialize(std::span<T> parameters, std::uint64_t seed) const;
  /// x: batch × inputs. Returns batch × outputs, valid until the next call.
  std::span<const T> forward(std::span<const T> parameters, std::span<const T> x, std::size_t batch);
  /// Overwrites `gradient` (parameter_count() values) from d(loss)/d(output) of the last forward pass.
  /// `done`, if there is one, is called when a layer's part is complete, with the numbers of its spans:
  /// [first, last).
  void backward(std::span<const T> parameters, std::span<const T> x, std::span<const T> output_gradient,
                std::span<T> gradient, const std::function<void(std::size_t, std::size_t)>& done = {});

 private:
  void add_dense(std::size_t width, const std::vector<std::size_t>& hidden, std::size_t outputs,
                 Activation activation);
  void place_parameters();

  std::vector<std::unique_ptr<Layer<T>>> layers_;
  std::vector<std::size_t> offsets_;  ///< of each layer's parameters, and the end
  std::vector<ParameterSpan> spans_;
  std::vector<std::size_t> first_span_;  ///< of each layer, and the end
  std::size_t parameter_count_ = 0;
  std::size_t batch_ = 0;
  std::vector<std::vector<T>> outputs_;    ///< of each layer
  std::vector<std::vector<T>> gradients_;  ///< with respect to each layer's input
};

}  // namespace tutti::model
