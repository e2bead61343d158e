#include "bench/pattern.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"
#include "kernel/kernel.hpp"

namespace tutti::bench {
namespace {

double value(std::size_t element, Rank rank, std::uint64_t turn, Op op) {
  const std::uint64_t mixed = base::mix(element + base::mix(static_cast<std::uint64_t>(rank) * 64 + turn));
  return 1.0 + static_cast<double>(mixed & (op == Op::product ? 1U : 3U));
}

double combine(double a, double b, Op op) {
  switch (op) {
    case Op::sum:
    case Op::average: return a + b;
    case Op::min: return std::min(a, b);
    case Op::max: return std::max(a, b);
    case Op::product: break;
  }
  return a * b;
}

template <class T>
void store(std::vector<std::byte>& bytes, const std::vector<double>& values, double divisor) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Numbers are whole and small: only the division rounds, in the type itself.
    T element{};
    if constexpr (std::is_floating_point_v<T>) {
      element = static_cast<T>(values[i]) / static_cast<T>(divisor);
    } else {
      element = static_cast<T>(static_cast<std::uint64_t>(values[i]) / static_cast<std::uint64_t>(divisor));
    }
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
}

}  // namespace

Pattern::Pattern(DType type, Op op, Rank ranks) : type_(type) {
  std::vector<std::vector<double>> sums(turns, std::vector<double>(period));
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      std::vector<double> values(period);
      for (std::size_t i = 0; i < period; ++i) {
        values[i] = value(i, rank, turn, op);
        sums[turn][i] = rank == 0 ? values[i] : combine(sums[turn][i], values[i], op);
      }
      contributions_.push_back(encode(values, 1));
    }
  }
  for (const auto& sum : sums) results_.push_back(encode(sum, op == Op::average ? ranks : 1));
}

std::vector<std::byte> Pattern::encode(const std::vector<double>& values, double divisor) const {
  std::vector<std::byte> bytes(period * size_of(type_));
  switch (type_) {
    case DType::f32: store<float>(bytes, values, divisor); break;
    case DType::f64: store<double>(bytes, values, divisor); break;
    case DType::i8:
    case DType::u8: store<std::uint8_t>(bytes, values, divisor); break;
    case DType::i32:
    case DType::u32: store<std::uint32_t>(bytes, values, divisor); break;
    case DType::i64:
    case DType::u64: store<std::uint64_t>(bytes, values, divisor); break;
    case DType::f16:
    case DType::bf16: {
      std::vector<std::byte> wide(period * sizeof(float));
      store<float>(wide, values, divisor);
      kernel::convert(type_, Op::sum, {bytes.data(), type_}, {wide.data(), DType::f32}, period);
      break;
    }
  }
  return bytes;
}

void Pattern::fill(std::span<std::byte> buffer, Rank rank, std::uint64_t iteration) const {
  const auto& source = contributions_[static_cast<std::size_t>(rank) * turns + iteration % turns];
  for (std::size_t at = 0; at < buffer.size(); at += source.size())
    std::memcpy(buffer.data() + at, source.data(), std::min(source.size(), buffer.size() - at));
}

std::size_t Pattern::wrong(std::span<const std::byte> buffer, const std::vector<std::byte>& periodic,
                           std::size_t first) const {
  const std::size_t width = size_of(type_);
  std::vector<std::byte> expected = periodic;
  std::ranges::rotate(expected, expected.begin() + static_cast<std::ptrdiff_t>(first % period * width));
  std::size_t count = 0;
  for (std::size_t at = 0; at < buffer.size(); at += expected.size()) {
    const std::size_t n = std::min(expected.size(), buffer.size() - at);
    if (std::memcmp(buffer.data() + at, expected.data(), n) == 0) continue;
    for (std::size_t i = 0; i < n; i += width)
      count += std::memcmp(buffer.data() + at + i, expected.data() + i, width) != 0 ? 1 : 0;
  }
  return count;
}

std::size_t Pattern::wrong_part(std::span<const std::byte> buffer, std::uint64_t iteration,
                                std::size_t first) const {
  return wrong(buffer, results_[iteration % turns], first);
}

std::size_t Pattern::wrong_copy(std::span<const std::byte> buffer, Rank rank, std::uint64_t iteration) const {
  return wrong(buffer, contributions_[static_cast<std::size_t>(rank) * turns + iteration % turns], 0);
}

}  // namespace tutti::bench
