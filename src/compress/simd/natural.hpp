#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compress/arithmetic/philox.hpp"

/// The loops of natural compression, vectorized; arithmetic/natural.hpp says what they compute.
namespace tutti::compress {

/// A byte for each value of `in`, plus residual[i] if that is not null; then stores there what was not sent.
/// What is not finite leaves its residual alone. `draws`: null to round to nearest. `first`: the number of
/// in[0] in its parameter.
void encode_natural(const Draws* draws, std::uint64_t first, std::span<const float> in, float* residual,
                    std::uint8_t* out);

/// out = or += what encode_natural() wrote at `in`.
void decode_natural(const std::uint8_t* in, std::span<float> out, bool add);

}  // namespace tutti::compress
