#include <array>
#include <cmath>

#include "base/error.hpp"
#include "model/layers.hpp"

namespace tutti::model {
namespace {

constexpr std::array<std::string_view, 2> names{"relu", "tanh"};

template <class T, class Value, class Slope>
class Elementwise final : public Layer<T> {
 public:
  explicit Elementwise(std::size_t width) : width_(width) {}

  std::size_t inputs() const override { return width_; }

  std::size_t outputs() const override { return width_; }

  void forward(std::span<const T>, std::span<const T> x, std::size_t, std::span<T> y) override {
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = Value{}(x[i]);
  }

  void backward(std::span<const T>, std::span<const T>, std::span<const T> y, std::span<const T> dy,
                std::size_t, std::span<T>, std::span<T> dx) override {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = dy[i] * Slope{}(y[i]);
  }

 private:
  std::size_t width_;
};

// Slopes from the output: both functions allow it, and it is what is at hand.
template <class T>
struct Relu {
  // Written so that NaN passes: a broken network must not look like a dead one.
  T operator()(T x) const { return x < 0 ? T{0} : x; }
};

template <class T>
struct ReluSlope {
  T operator()(T y) const { return y > 0 ? T{1} : T{0}; }
};

template <class T>
struct Tanh {
  T operator()(T x) const { return std::tanh(x); }
};

template <class T>
struct TanhSlope {
  T operator()(T y) const { return 1 - y * y; }
};

}  // namespace

std::string_view name_of(Activation activation) noexcept {
  return names[static_cast<std::size_t>(activation)];
}

Activation activation_from(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Activation>(i);
  }
  base::fail<InvalidArgument>("unknown activation '{}'; known are {}", name, fmt::join(names, ", "));
}

template <class T>
std::unique_ptr<Layer<T>> make_activation(std::size_t width, Activation activation) {
  if (activation == Activation::tanh) return std::make_unique<Elementwise<T, Tanh<T>, TanhSlope<T>>>(width);
  return std::make_unique<Elementwise<T, Relu<T>, ReluSlope<T>>>(width);
}

template std::unique_ptr<Layer<float>> make_activation<float>(std::size_t, Activation);
template std::unique_ptr<Layer<double>> make_activation<double>(std::size_t, Activation);

}  // namespace tutti::model
