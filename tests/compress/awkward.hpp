#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.hpp"

/// Blocks of all kinds in turn: usual ones, wide ranges, zeros, denormals, the largest of all, NaN, infinity.
inline std::vector<float> awkward(std::size_t count, std::size_t block, std::uint64_t seed) {
  tutti::base::Random random(seed, 9);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double normal = random.normal();
    switch ((i / block + seed) % 8) {
      case 0: values[i] = static_cast<float>(normal); break;
      case 1: values[i] = static_cast<float>(normal * std::exp(6 * random.normal())); break;
      case 2: values[i] = i % 2 == 0 ? 0.0F : -0.0F; break;
      case 3: values[i] = static_cast<float>(normal * 1e-40); break;
      case 4: values[i] = static_cast<float>(normal * 1e-37); break;
      case 5: values[i] = std::numeric_limits<float>::max() * (i % 3 == 0 ? -1.0F : 0.3F); break;
      case 6:
        values[i] = i % 19 == 7 ? -std::numeric_limits<float>::quiet_NaN() : static_cast<float>(normal);
        break;
      default:
        values[i] = i % 23 == 5 ? -std::numeric_limits<float>::infinity() : static_cast<float>(normal);
        break;
    }
  }
  return values;
}
