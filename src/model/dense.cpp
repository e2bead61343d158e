#include <Eigen/Core>
#include <cmath>

#include "base/random.hpp"
#include "model/layers.hpp"

namespace tutti::model {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Row = Eigen::Matrix<T, 1, Eigen::Dynamic>;

constexpr Eigen::Index index(std::size_t n) {
  return static_cast<Eigen::Index>(n);
}

template <class T>
class Dense final : public Layer<T> {
 public:
  Dense(std::size_t inputs, std::size_t outputs, Initial initial)
      : inputs_(inputs), outputs_(outputs), initial_(initial) {}

  std::size_t inputs() const override { return inputs_; }

  std::size_t outputs() const override { return outputs_; }

  std::vector<ParameterSpan> spans() const override {
    return {{"weight", 0, inputs_ * outputs_, outputs_, inputs_},
            {"bias", inputs_ * outputs_, outputs_, 1, outputs_}};
  }

  void initialize(std::span<T> parameters, std::uint64_t seed) const override {
    const double fan = static_cast<double>(initial_ == Initial::he ? inputs_ : inputs_ + outputs_);
    const double deviation = std::sqrt(2.0 / fan);
    base::Random random(seed);
    for (std::size_t i = 0; i < inputs_ * outputs_; ++i)
      parameters[i] = static_cast<T>(deviation * random.normal());
    for (std::size_t i = inputs_ * outputs_; i < parameters.size(); ++i) parameters[i] = 0;
  }

  void forward(std::span<const T> parameters, std::span<const T> x, std::size_t batch,
               std::span<T> y) override {
    Eigen::Map<Matrix<T>> out(y.data(), index(batch), index(outputs_));
    out.noalias() = in(x, batch) * weight(parameters).transpose();
    out.rowwise() += Eigen::Map<const Row<T>>(parameters.data() + inputs_ * outputs_, index(outputs_));
  }

  void backward(std::span<const T> parameters, std::span<const T> x, std::span<const T> /*y*/,
                std::span<const T> dy, std::size_t batch, std::span<T> gradient, std::span<T> dx) override {
    const Eigen::Map<const Matrix<T>> out(dy.data(), index(batch), index(outputs_));
    Eigen::Map<Matrix<T>>(gradient.data(), index(outputs_), index(inputs_)).noalias() =
        out.transpose() * in(x, batch);
    Eigen::Map<Row<T>>(gradient.data() + inputs_ * outputs_, index(outputs_)) = out.colwise().sum();
    if (!dx.empty())
      Eigen::Map<Matrix<T>>(dx.data(), index(batch), index(inputs_)).noalias() = out * weight(parameters);
  }

 private:
  Eigen::Map<const Matrix<T>> in(std::span<const T> x, std::size_t batch) const {
    return {x.data(), index(batch), index(inputs_)};
  }

  Eigen::Map<const Matrix<T>> weight(std::span<const T> parameters) const {
    return {parameters.data(), index(outputs_), index(inputs_)};
  }

  std::size_t inputs_;
  std::size_t outputs_;
  Initial initial_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_dense(std::size_t inputs, std::size_t outputs, Initial initial) {
  return std::make_unique<Dense<T>>(inputs, outputs, initial);
}

template std::unique_ptr<Layer<float>> make_dense<float>(std::size_t, std::size_t, Initial);
template std::unique_ptr<Layer<double>> make_dense<double>(std::size_t, std::size_t, Initial);

}  // namespace tutti::model
