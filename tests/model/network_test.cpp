#include "model/network.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "model/layers.hpp"
#include "model/loss.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::model;

namespace {

std::vector<double> normals(std::size_t count, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = random.normal();
  return values;
}

/// Largest relative difference between `gradient` and the central differences of loss(), which depends on
/// `parameters`.
template <class LossOf>
double difference(std::span<double> parameters, std::span<const double> gradient, const LossOf& loss) {
  double worst = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double kept = parameters[i];
    constexpr double h = 1e-6;
    parameters[i] = kept + h;
    const double above = loss();
    parameters[i] = kept - h;
    const double below = loss();
    parameters[i] = kept;
    worst = std::max(worst, std::abs((above - below) / (2 * h) - gradient[i]) / (1 + std::abs(gradient[i])));
  }
  return worst;
}

double gradient_error(Network<double> network, Loss loss) {
  constexpr std::size_t batch = 5;
  std::vector<double> parameters(network.parameter_count());
  network.initialize(parameters, 3);
  const auto x = normals(batch * network.inputs(), 1);
  const auto targets = normals(batch * network.outputs(), 2);
  std::vector<std::uint32_t> labels;
  for (std::size_t i = 0; i < batch; ++i) labels.push_back(static_cast<std::uint32_t>(i % network.outputs()));
  std::vector<double> output_gradient(batch * network.outputs());
  const auto loss_of = [&](std::span<double> gradient) {
    const auto outputs = network.forward(parameters, x, batch);
    if (loss == Loss::squared) return squared<double>(outputs, targets, 1.0, gradient);
    return cross_entropy<double>(outputs, labels, network.outputs(), 1.0, gradient).loss;
  };
  loss_of(output_gradient);
  std::vector<double> gradient(parameters.size());
  network.backward(parameters, x, output_gradient, gradient);
  return difference(parameters, gradient, [&] { return loss_of({}); });
}

/// Of one layer, with respect to its parameters and its inputs, under the loss Σ coefficient · output.
double layer_error(Layer<double>& layer, std::size_t batch) {
  std::vector<double> parameters;
  for (const auto& span : layer.spans()) parameters.resize(span.offset + span.count);
  layer.initialize(parameters, 3);
  for (double& value : parameters) value += 0.25;  // biases other than zero
  auto x = normals(batch * layer.inputs(), 1);
  const auto coefficients = normals(batch * layer.outputs(), 2);
  std::vector<double> y(coefficients.size());
  const auto loss = [&] {
    layer.forward(parameters, x, batch, y);
    return std::inner_product(y.begin(), y.end(), coefficients.begin(), 0.0);
  };
  loss();
  std::vector<double> gradient(parameters.size(), 7.0);
  std::vector<double> dx(x.size(), 7.0);
  layer.backward(parameters, x, y, coefficients, batch, gradient, dx);
  std::vector<double> alone(parameters.size(), 7.0);
  layer.backward(parameters, x, y, coefficients, batch, alone, {});
  CHECK(alone == gradient);
  return std::max(difference(parameters, gradient, loss), difference(x, dx, loss));
}

}  // namespace

TEST_CASE("gradients are those of finite differences") {
  for (const Loss loss : {Loss::cross_entropy, Loss::squared}) {
    CHECK(gradient_error(Network<double>(NetworkShape{4, {}, 3, Activation::relu}), loss) < 1e-7);
    CHECK(gradient_error(Network<double>(NetworkShape{4, {7}, 3, Activation::tanh}), loss) < 1e-7);
    CHECK(gradient_error(Network<double>(NetworkShape{4, {7, 5}, 3, Activation::relu}), loss) < 1e-7);
  }
  CHECK(gradient_error(Network<double>(LeNetShape{12, 13, 3, Activation::tanh}), Loss::cross_entropy) < 1e-6);
}

TEST_CASE("gradients of convolutions and pooling, with padding, channels and odd sizes") {
  for (const std::size_t padding : {0, 1, 2}) {
    for (const std::size_t kernel : {3, 4}) {
      const auto layer = make_convolution<double>({2, 5, 7, 3, kernel, padding}, Initial::he);
      CHECK(layer->outputs() == 3 * (6 + 2 * padding - kernel) * (8 + 2 * padding - kernel));
      CHECK(layer_error(*layer, 2) < 1e-7);
    }
  }
  // Wider than the image, all of it seen at once only with padding.
  CHECK(layer_error(*make_convolution<double>({1, 1, 2, 2, 3, 2}, Initial::he), 3) < 1e-7);
  CHECK(layer_error(*make_convolution<double>({1, 4, 4, 1, 4, 0}, Initial::glorot), 1) < 1e-7);
  for (const auto& [height, width] : {std::pair{2, 2}, {5, 7}, {4, 3}})
    CHECK(layer_error(*make_max_pooling<double>(3, height, width), 2) < 1e-7);
}

TEST_CASE("a convolution is the sum over its kernel") {
  const auto layer = make_convolution<float>({1, 3, 3, 1, 2, 1}, Initial::he);
  const std::vector<float> parameters{1, 10, 100, 1000, 0.5F};
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> y(layer->outputs());
  layer->forward(parameters, x, 1, y);
  CHECK(y == std::vector<float>{1000.5F, 2100.5F, 3200.5F, 300.5F, 4010.5F, 5421.5F, 6532.5F, 603.5F, 7040.5F,
                                8754.5F, 9865.5F, 906.5F, 70.5F, 87.5F, 98.5F, 9.5F});
}

TEST_CASE("pooling takes the first of the largest, and NaN passes through it") {
  const auto layer = make_max_pooling<float>(1, 3, 5);  // the last row and column are left out
  const float nan = std::nanf("");
  const std::vector<float> x{1, 4, nan, 2, 9, 4, 3, 8, 1, 9, 9, 9, 9, 9, 9};
  std::vector<float> y(2);
  layer->forward({}, x, 1, y);
  CHECK(y[0] == 4);
  CHECK(std::isnan(y[1]));
  const std::vector<float> dy{1, 2};
  std::vector<float> dx(x.size(), 7.0F);
  layer->backward({}, x, y, dy, 1, {}, dx);
  CHECK(dx == std::vector<float>{0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("lenet has 61,706 parameters on images of 28 × 28") {
  Network<float> network(LeNetShape{28, 28, 10, Activation::relu});
  CHECK(network.inputs() == 784);
  CHECK(network.outputs() == 10);
  CHECK(network.parameter_count() == 61706);
  CHECK(network.spans().front().name == "0.weight");
  CHECK(network.spans().front().count == 150);
  std::vector<float> parameters(network.parameter_count());
  network.initialize(parameters, 1);
  std::vector<float> gradient(parameters.size(), 7.0F);
  CHECK(network.forward(parameters, {}, 0).empty());
  network.backward(parameters, {}, {}, gradient);
  CHECK(std::ranges::all_of(gradient, [](float g) { return g == 0; }));
  CHECK_THROWS_WITH(Network<float>(LeNetShape{28, 11, 10, Activation::relu}),
                    ContainsSubstring("at least 12 × 12 pixels") && ContainsSubstring("28 × 11"));
  CHECK_THROWS_AS(make_convolution<float>({1, 3, 3, 1, 5, 0}, Initial::he), InvalidArgument);
  CHECK_THROWS_AS(make_convolution<float>({0, 3, 3, 1, 3, 0}, Initial::he), InvalidArgument);
  CHECK_THROWS_AS(make_max_pooling<float>(1, 1, 4), InvalidArgument);
}

TEST_CASE("spans name the flat buffer without gaps") {
  const Network<float> network(NetworkShape{64, {128}, 10, Activation::relu});
  CHECK(network.parameter_count() == 64 * 128 + 128 + 128 * 10 + 10);
  const auto& spans = network.spans();
  REQUIRE(spans.size() == 4);
  CHECK(spans[0].name == "0.weight");
  CHECK(spans[3].name == "2.bias");
  std::size_t next = 0;
  for (const auto& span : spans) {
    CHECK(span.offset == next);
    CHECK(span.rows * span.columns == span.count);
    next += span.count;
  }
  CHECK(next == network.parameter_count());
}

TEST_CASE("initial values follow from the seed, have the variance of He and zero biases") {
  const Network<float> network(NetworkShape{100, {400}, 10, Activation::relu});
  std::vector<float> a(network.parameter_count());
  std::vector<float> b(a.size());
  std::vector<float> other(a.size());
  network.initialize(a, 5);
  network.initialize(b, 5);
  network.initialize(other, 6);
  CHECK(a == b);
  CHECK(a != other);
  double squares = 0;
  for (std::size_t i = 0; i < 40000; ++i) squares += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  CHECK(squares / 40000 == Approx(0.02).epsilon(0.05));
  for (std::size_t i = 40000; i < 40400; ++i) CHECK(a[i] == 0);
}

TEST_CASE("an empty batch gives a zero gradient: ranks may have no samples of a step") {
  Network<float> network(NetworkShape{3, {4}, 2, Activation::relu});
  std::vector<float> parameters(network.parameter_count());
  network.initialize(parameters, 1);
  std::vector<float> gradient(parameters.size(), 7.0F);
  CHECK(network.forward(parameters, {}, 0).empty());
  network.backward(parameters, {}, {}, gradient);
  for (const float g : gradient) CHECK(g == 0);
}

TEST_CASE("NaN passes through the network instead of vanishing in it") {
  Network<float> network(NetworkShape{1, {2}, 1, Activation::relu});
  std::vector<float> parameters(network.parameter_count(), 1.0F);
  const std::vector<float> x{std::nanf("")};
  CHECK(std::isnan(network.forward(parameters, x, 1)[0]));
}

TEST_CASE("widths of zero and buffers of another size are refused") {
  CHECK_THROWS_AS(Network<float>(NetworkShape{0, {}, 2, Activation::relu}), InvalidArgument);
  CHECK_THROWS_AS(Network<float>(NetworkShape{2, {0}, 2, Activation::relu}), InvalidArgument);
  Network<float> network(NetworkShape{2, {}, 2, Activation::relu});
  std::vector<float> few(3);
  CHECK_THROWS_AS(network.initialize(few, 1), InvalidArgument);
  CHECK_THROWS_AS(activation_from("sigmoid"), InvalidArgument);
}
