#include "model/network.hpp"

#include "base/error.hpp"
#include "base/random.hpp"

namespace tutti::model {

template <class T>
Network<T>::Network(const NetworkShape& shape) {
  base::require(shape.inputs > 0 && shape.outputs > 0, "a network needs inputs and outputs, not {} and {}",
                shape.inputs, shape.outputs);
  add_dense(shape.inputs, shape.hidden, shape.outputs, shape.activation);
  place_parameters();
}

template <class T>
Network<T>::Network(const LeNetShape& shape) {
  constexpr std::size_t least = 12;
  base::require(shape.height >= least && shape.width >= least && shape.outputs > 0,
                "lenet needs images of at least {} × {} pixels and outputs; there are {} × {} and {}", least,
                least, shape.height, shape.width, shape.outputs);
  const Initial initial = shape.activation == Activation::relu ? Initial::he : Initial::glorot;
  ConvolutionShape convolution{.height = shape.height, .width = shape.width, .filters = 6, .padding = 2};
  layers_.push_back(make_convolution<T>(convolution, initial));
  layers_.push_back(make_activation<T>(layers_.back()->outputs(), shape.activation));
  layers_.push_back(make_max_pooling<T>(convolution.filters, shape.height, shape.width));
  convolution = {
      .channels = convolution.filters, .height = shape.height / 2, .width = shape.width / 2, .filters = 16};
  layers_.push_back(make_convolution<T>(convolution, initial));
  layers_.push_back(make_activation<T>(layers_.back()->outputs(), shape.activation));
  layers_.push_back(make_max_pooling<T>(convolution.filters, convolution.height + 1 - convolution.kernel,
                                        convolution.width + 1 - convolution.kernel));
  add_dense(layers_.back()->outputs(), {120, 84}, shape.outputs, shape.activation);
  place_parameters();
}

template <class T>
void Network<T>::add_dense(std::size_t width, const std::vector<std::size_t>& hidden, std::size_t outputs,
                           Activation activation) {
  for (const std::size_t next : hidden) {
    base::require(next > 0, "a hidden layer of width 0");
    layers_.push_back(
        make_dense<T>(width, next, activation == Activation::relu ? Initial::he : Initial::glorot));
    layers_.push_back(make_activation<T>(next, activation));
    width = next;
  }
  layers_.push_back(make_dense<T>(width, outputs, Initial::glorot));
}

template <class T>
void Network<T>::place_parameters() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    offsets_.push_back(parameter_count_);
    first_span_.push_back(spans_.size());
    for (ParameterSpan span : layers_[i]->spans()) {
      span.name = fmt::format("{}.{}", i, span.name);
      span.offset += offsets_.back();
      parameter_count_ += span.count;
      spans_.push_back(std::move(span));
    }
  }
  offsets_.push_back(parameter_count_);
  first_span_.push_back(spans_.size());
  outputs_.resize(layers_.size());
  gradients_.resize(layers_.size());
}

template <class T>
void Network<T>::initialize(std::span<T> parameters, std::uint64_t seed) const {
  base::require(parameters.size() == parameter_count_, "{} parameters for a network of {}", parameters.size(),
                parameter_count_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i]->initialize(parameters.subspan(offsets_[i], offsets_[i + 1] - offsets_[i]),
                           base::mix(seed) + i);
  }
}

template <class T>
std::span<const T> Network<T>::forward(std::span<const T> parameters, std::span<const T> x,
                                       std::size_t batch) {
  base::require(x.size() == batch * inputs(), "{} inputs for {} samples of {}", x.size(), batch, inputs());
  batch_ = batch;
  std::span<const T> in = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    outputs_[i].resize(batch * layers_[i]->outputs());
    layers_[i]->forward(parameters.subspan(offsets_[i], offsets_[i + 1] - offsets_[i]), in, batch,
                        outputs_[i]);
    in = outputs_[i];
  }
  return in;
}

template <class T>
void Network<T>::backward(std::span<const T> parameters, std::span<const T> x,
                          std::span<const T> output_gradient, std::span<T> gradient,
                          const std::function<void(std::size_t, std::size_t)>& done) {
  base::require(output_gradient.size() == batch_ * outputs(), "{} output gradients for {} samples of {}",
                output_gradient.size(), batch_, outputs());
  std::span<const T> dy = output_gradient;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const std::size_t count = offsets_[i + 1] - offsets_[i];
    // Nobody asks for the gradient of the data.
    if (i > 0) gradients_[i].resize(batch_ * layers_[i]->inputs());
    layers_[i]->backward(parameters.subspan(offsets_[i], count),
                         i == 0 ? x : std::span<const T>(outputs_[i - 1]), outputs_[i], dy, batch_,
                         gradient.subspan(offsets_[i], count), gradients_[i]);
    dy = gradients_[i];
    if (done && first_span_[i] < first_span_[i + 1]) done(first_span_[i], first_span_[i + 1]);
  }
}

template class Network<float>;
template class Network<double>;

}  // namespace tutti::model
