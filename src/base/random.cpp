#include "base/random.hpp"

#include <cmath>
#include <numbers>

namespace tutti::base {

std::uint64_t Random::below(std::uint64_t bound) noexcept {
  if (bound == 0) return 0;
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>((*this)()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>((*this)()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::normal() noexcept {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit()));
  const double angle = 2.0 * std::numbers::pi * unit();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace tutti::base
