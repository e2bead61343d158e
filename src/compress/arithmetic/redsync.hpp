#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"
#include "compress/arithmetic/select.hpp"

/// The thresholds that RedSync tries, eight at a time: as many as one pass over the values counts.
namespace tutti::compress {

/// Trimmed top-k: mean + r · (largest - mean) for r = 0.8, 0.6 … 0, then everything.
TUTTI_HD inline std::array<Key, 8> trimmed_thresholds(double mean, Key largest) noexcept {
  std::array<Key, 8> keys{};
  const auto most = static_cast<double>(std::bit_cast<float>(largest));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double r = 0.8 - 0.2 * static_cast<double>(i);
    const Key key = i < 5 ? key_of(static_cast<float>(mean + (i < 4 ? r : 0.0) * (most - mean))) : least_key;
    keys[i] = key < least_key ? least_key : key < infinity_key ? key : infinity_key;
  }
  return keys;
}

/// An interval of keys: `low` is reached by too many values or by as many as there are, `high` by too few.
struct Interval {
  Key low;
  Key high;
};

/// Eight thresholds that cut an interval into nine equal parts. Parts of keys, which are nearly logarithms:
/// one outlier does not make the search long.
TUTTI_HD inline std::array<Key, 8> inner_thresholds(Interval interval) noexcept {
  std::array<Key, 8> keys{};
  const std::uint64_t width = interval.high - interval.low;
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = interval.low + static_cast<Key>(width * (i + 1) / 9);
  return keys;
}

}  // namespace tutti::compress
