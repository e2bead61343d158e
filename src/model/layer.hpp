#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::model {

/// A named part of the flat parameter buffer (and, at the same place, of the flat gradient buffer).
struct ParameterSpan {
  std::string name;  ///< "0.weight", "0.bias", …
  std::size_t offset = 0;
  std::size_t count = 0;
  std::size_t rows = 0;  ///< weight: outputs; bias: 1
  std::size_t columns = 0;
};

/// One layer of a network. Batches are row-major, one sample a row. A layer owns no parameters: it is given
/// its part of the flat buffers, so that these can live in memory that other ranks read. T: float, or double
/// for tests.
template <class T>
class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  virtual std::size_t inputs() const = 0;
  virtual std::size_t outputs() const = 0;

  /// Spans with offsets relative to the layer's own part; names without the layer's number.
  virtual std::vector<ParameterSpan> spans() const { return {}; }

  /// Seeded initial values, the same on every machine.
  virtual void initialize(std::span<T> /*parameters*/, std::uint64_t /*seed*/) const {}

  /// y (batch × outputs) from x (batch × inputs). x must stay as it is until backward().
  virtual void forward(std::span<const T> parameters, std::span<const T> x, std::size_t batch,
                       std::span<T> y) = 0;
  /// From dy (batch × outputs): overwrites `gradient` (of the parameters) and, unless it is empty, dx (batch
  /// × inputs).
  virtual void backward(std::span<const T> parameters, std::span<const T> x, std::span<const T> y,
                        std::span<const T> dy, std::size_t batch, std::span<T> gradient, std::span<T> dx) = 0;
};

}  // namespace tutti::model
