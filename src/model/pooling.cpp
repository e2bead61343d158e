#include <algorithm>

#include "base/error.hpp"
#include "model/layers.hpp"

namespace tutti::model {
namespace {

template <class T>
class MaxPooling final : public Layer<T> {
 public:
  MaxPooling(std::size_t channels, std::size_t height, std::size_t width)
      : channels_(channels), height_(height), width_(width) {}

  std::size_t inputs() const override { return channels_ * height_ * width_; }

  std::size_t outputs() const override { return channels_ * (height_ / 2) * (width_ / 2); }

  void forward(std::span<const T>, std::span<const T> x, std::size_t batch, std::span<T> y) override {
    windows(batch, [&](std::size_t out, std::size_t in) { y[out] = x[largest(x, in)]; });
  }

  void backward(std::span<const T>, std::span<const T> x, std::span<const T>, std::span<const T> dy,
                std::size_t batch, std::span<T>, std::span<T> dx) override {
    std::ranges::fill(dx, T{0});
    if (dx.empty()) return;
    windows(batch, [&](std::size_t out, std::size_t in) { dx[largest(x, in)] = dy[out]; });
  }

 private:
  /// each(number of the output, number of the first of its four inputs)
  template <class Each>
  void windows(std::size_t batch, const Each& each) const {
    std::size_t out = 0;
    for (std::size_t image = 0; image < batch * channels_; ++image) {
      for (std::size_t i = 0; i + 1 < height_; i += 2) {
        for (std::size_t j = 0; j + 1 < width_; j += 2) each(out++, (image * height_ + i) * width_ + j);
      }
    }
  }

  /// The first of the largest; NaN is larger than all, so that it passes.
  std::size_t largest(std::span<const T> x, std::size_t in) const {
    std::size_t best = in;
    for (const std::size_t other : {in + 1, in + width_, in + width_ + 1}) {
      if (!(x[other] <= x[best]) && x[best] == x[best]) best = other;
    }
    return best;
  }

  std::size_t channels_;
  std::size_t height_;
  std::size_t width_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_max_pooling(std::size_t channels, std::size_t height, std::size_t width) {
  base::require(channels > 0 && height > 1 && width > 1, "pooling over {} images of {} × {}", channels,
                height, width);
  return std::make_unique<MaxPooling<T>>(channels, height, width);
}

template std::unique_ptr<Layer<float>> make_max_pooling<float>(std::size_t, std::size_t, std::size_t);
template std::unique_ptr<Layer<double>> make_max_pooling<double>(std::size_t, std::size_t, std::size_t);

}  // namespace tutti::model
