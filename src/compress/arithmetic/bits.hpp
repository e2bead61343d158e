#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace tutti::compress {

using base::bits_of;
using base::float_of;

inline constexpr std::uint32_t magnitude_bits = 0x7FFFFFFFU;
inline constexpr std::uint32_t infinity_bits = 0x7F800000U;
inline constexpr std::uint32_t quiet_nan_bits = 0x7FC00000U;

}  // namespace tutti::compress
