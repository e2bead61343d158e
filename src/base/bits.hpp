#pragma once

#include <bit>
#include <cstdint>

#include "base/portable.hpp"

namespace tutti::base {

/// The bits of a float and back; CUDA has no std::bit_cast in device code.
TUTTI_HD inline std::uint32_t bits_of(float value) noexcept {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<std::uint32_t>(value);
#endif
}

TUTTI_HD inline float float_of(std::uint32_t bits) noexcept {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

}  // namespace tutti::base
