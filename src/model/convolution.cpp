#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"
#include "model/layers.hpp"

namespace tutti::model {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Column = Eigen::Matrix<T, Eigen::Dynamic, 1>;

constexpr Eigen::Index index(std::size_t n) {
  return static_cast<Eigen::Index>(n);
}

/// By im2col: the patches of one sample as columns of a matrix, one sample after the other, so that it stays
/// in the cache. The backward pass makes them again: that costs less than keeping those of a batch.
template <class T>
class Convolution final : public Layer<T> {
 public:
  Convolution(const ConvolutionShape& shape, Initial initial)
      : shape_(shape),
        height_(shape.height + 2 * shape.padding + 1 - shape.kernel),
        width_(shape.width + 2 * shape.padding + 1 - shape.kernel),
        patch_(shape.channels * shape.kernel * shape.kernel),
        initial_(initial),
        columns_(patch_ * height_ * width_) {}

  std::size_t inputs() const override { return shape_.channels * shape_.height * shape_.width; }

  std::size_t outputs() const override { return shape_.filters * places(); }

  std::vector<ParameterSpan> spans() const override {
    return {{"weight", 0, shape_.filters * patch_, shape_.filters, patch_},
            {"bias", shape_.filters * patch_, shape_.filters, 1, shape_.filters}};
  }

  void initialize(std::span<T> parameters, std::uint64_t seed) const override {
    const std::size_t around = shape_.filters * shape_.kernel * shape_.kernel;
    const auto fan = static_cast<double>(initial_ == Initial::he ? patch_ : patch_ + around);
    const double deviation = std::sqrt(2.0 / fan);
    base::Random random(seed);
    const auto weights = parameters.first(shape_.filters * patch_);
    for (T& weight : weights) weight = static_cast<T>(deviation * random.normal());
    std::ranges::fill(parameters.subspan(weights.size()), T{0});
  }

  void forward(std::span<const T> parameters, std::span<const T> x, std::size_t batch,
               std::span<T> y) override {
    const Eigen::Map<const Column<T>> bias(parameters.data() + shape_.filters * patch_,
                                           index(shape_.filters));
    for (std::size_t n = 0; n < batch; ++n) {
      unfold(x.data() + n * inputs());
      Eigen::Map<Matrix<T>> out(y.data() + n * outputs(), index(shape_.filters), index(places()));
      out.noalias() = weight(parameters) * columns();
      out.colwise() += bias;
    }
  }

  void backward(std::span<const T> parameters, std::span<const T> x, std::span<const T> /*y*/,
                std::span<const T> dy, std::size_t batch, std::span<T> gradient, std::span<T> dx) override {
    Eigen::Map<Matrix<T>> weights(gradient.data(), index(shape_.filters), index(patch_));
    Eigen::Map<Column<T>> bias(gradient.data() + shape_.filters * patch_, index(shape_.filters));
    weights.setZero();
    bias.setZero();
    if (!dx.empty()) std::ranges::fill(dx, T{0});
    for (std::size_t n = 0; n < batch; ++n) {
      const Eigen::Map<const Matrix<T>> out(dy.data() + n * outputs(), index(shape_.filters),
                                            index(places()));
      unfold(x.data() + n * inputs());
      weights.noalias() += out * columns().transpose();
      bias += out.rowwise().sum();
      if (dx.empty()) continue;
      columns().noalias() = weight(parameters).transpose() * out;
      fold(dx.data() + n * inputs());
    }
  }

 private:
  /// Of the kernel, in one image.
  std::size_t places() const { return height_ * width_; }

  Eigen::Map<Matrix<T>> columns() { return {columns_.data(), index(patch_), index(places())}; }

  Eigen::Map<const Matrix<T>> weight(std::span<const T> parameters) const {
    return {parameters.data(), index(shape_.filters), index(patch_)};
  }

  /// each(row of columns(), image row or nullptr where it is padding, first and last column that are in it):
  /// element j of the row of columns() belongs to image column j + shift.
  template <class Pixel, class Each>
  void rows(Pixel* image, const Each& each) {
    std::size_t line = 0;
    for (std::size_t c = 0; c < shape_.channels; ++c) {
      for (std::size_t a = 0; a < shape_.kernel; ++a) {
        for (std::size_t b = 0; b < shape_.kernel; ++b, ++line) {
          const std::size_t first = shape_.padding > b ? shape_.padding - b : 0;
          const std::size_t last = std::min(width_, shape_.width + shape_.padding - b);
          for (std::size_t i = 0; i < height_; ++i) {
            const std::size_t y = i + a;  // in the padded image
            const bool inside = y >= shape_.padding && y < shape_.padding + shape_.height;
            Pixel* from = inside ? image + (c * shape_.height + y - shape_.padding) * shape_.width + b +
                                       first - shape_.padding
                                 : nullptr;
            each(columns_.data() + line * places() + i * width_, from, first, last);
          }
        }
      }
    }
  }

  void unfold(const T* image) {
    rows(image, [this](T* row, const T* from, std::size_t first, std::size_t last) {
      if (from == nullptr) {
        std::fill_n(row, width_, T{0});
        return;
      }
      std::fill_n(row, first, T{0});
      std::copy_n(from, last - first, row + first);
      std::fill(row + last, row + width_, T{0});
    });
  }

  void fold(T* image) {
    rows(image, [](const T* row, T* to, std::size_t first, std::size_t last) {
      if (to == nullptr) return;
      for (std::size_t j = first; j < last; ++j) to[j - first] += row[j];
    });
  }

  ConvolutionShape shape_;
  std::size_t height_;  ///< of an output
  std::size_t width_;
  std::size_t patch_;  ///< elements that a place depends on
  Initial initial_;
  std::vector<T> columns_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_convolution(const ConvolutionShape& shape, Initial initial) {
  base::require(shape.channels > 0 && shape.filters > 0 && shape.kernel > 0 && shape.padding < shape.kernel,
                "a convolution of {} channels, {} filters, kernel {}, padding {}", shape.channels,
                shape.filters, shape.kernel, shape.padding);
  base::require(
      shape.height + 2 * shape.padding >= shape.kernel && shape.width + 2 * shape.padding >= shape.kernel,
      "a kernel of {} × {} on images of {} × {}", shape.kernel, shape.kernel, shape.height, shape.width);
  return std::make_unique<Convolution<T>>(shape, initial);
}

template std::unique_ptr<Layer<float>> make_convolution<float>(const ConvolutionShape&, Initial);
template std::unique_ptr<Layer<double>> make_convolution<double>(const ConvolutionShape&, Initial);

}  // namespace tutti::model
