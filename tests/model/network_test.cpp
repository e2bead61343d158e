#include "model/network.hpp"

#include <cmath>
#include <vector>

#include "base/random.hpp"
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

/// Largest relative difference between the gradient of backward() and central differences.
double gradient_error(const NetworkShape& shape, Loss loss) {
  Network<double> network(shape);
  constexpr std::size_t batch = 5;
  std::vector<double> parameters(network.parameter_count());
  network.initialize(parameters, 3);
  const auto x = normals(batch * shape.inputs, 1);
  const auto targets = normals(batch * shape.outputs, 2);
  std::vector<std::uint32_t> labels;
  for (std::size_t i = 0; i < batch; ++i) labels.push_back(static_cast<std::uint32_t>(i % shape.outputs));
  std::vector<double> output_gradient(batch * shape.outputs);
  const auto loss_of = [&](std::span<double> gradient) {
    const auto outputs = network.forward(parameters, x, batch);
    if (loss == Loss::squared) return squared<double>(outputs, targets, 1.0, gradient);
    return cross_entropy<double>(outputs, labels, shape.outputs, 1.0, gradient).loss;
  };
  loss_of(output_gradient);
  std::vector<double> gradient(parameters.size());
  network.backward(parameters, x, output_gradient, gradient);
  double worst = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double kept = parameters[i];
    constexpr double h = 1e-6;
    parameters[i] = kept + h;
    const double above = loss_of({});
    parameters[i] = kept - h;
    const double below = loss_of({});
    parameters[i] = kept;
    worst = std::max(worst, std::abs((above - below) / (2 * h) - gradient[i]) / (1 + std::abs(gradient[i])));
  }
  return worst;
}

}  // namespace

TEST_CASE("gradients are those of finite differences") {
  for (const Loss loss : {Loss::cross_entropy, Loss::squared}) {
    CHECK(gradient_error({4, {}, 3, Activation::relu}, loss) < 1e-7);
    CHECK(gradient_error({4, {7}, 3, Activation::tanh}, loss) < 1e-7);
    CHECK(gradient_error({4, {7, 5}, 3, Activation::relu}, loss) < 1e-7);
  }
}

TEST_CASE("spans name the flat buffer without gaps") {
  const Network<float> network({64, {128}, 10, Activation::relu});
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
  const Network<float> network({100, {400}, 10, Activation::relu});
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
  Network<float> network({3, {4}, 2, Activation::relu});
  std::vector<float> parameters(network.parameter_count());
  network.initialize(parameters, 1);
  std::vector<float> gradient(parameters.size(), 7.0F);
  CHECK(network.forward(parameters, {}, 0).empty());
  network.backward(parameters, {}, {}, gradient);
  for (const float g : gradient) CHECK(g == 0);
}

TEST_CASE("NaN passes through the network instead of vanishing in it") {
  Network<float> network({1, {2}, 1, Activation::relu});
  std::vector<float> parameters(network.parameter_count(), 1.0F);
  const std::vector<float> x{std::nanf("")};
  CHECK(std::isnan(network.forward(parameters, x, 1)[0]));
}

TEST_CASE("widths of zero and buffers of another size are refused") {
  CHECK_THROWS_AS(Network<float>({0, {}, 2, Activation::relu}), InvalidArgument);
  CHECK_THROWS_AS(Network<float>({2, {0}, 2, Activation::relu}), InvalidArgument);
  Network<float> network({2, {}, 2, Activation::relu});
  std::vector<float> few(3);
  CHECK_THROWS_AS(network.initialize(few, 1), InvalidArgument);
  CHECK_THROWS_AS(activation_from("sigmoid"), InvalidArgument);
}
