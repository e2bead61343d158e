#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compress/codec.hpp"
#include "exchange/coded.hpp"

namespace tutti::gradient {

/// What is encoded and travels together.
struct CodedPart {
  std::vector<exchange::Run> runs;
  std::vector<std::vector<exchange::Run>> slices;  ///< that each rank adds up; reencodable codecs only
};

/// 1 MiB of gradients.
inline constexpr std::size_t coded_part_elements = std::size_t{1} << 18U;

/// A long bucket goes in parts: while one is on the wire the next is encoded. Codecs that look at whole
/// parameters get them whole, so that their bits do not depend on buckets. `bucket`: its parameters, one
/// behind the other.
std::vector<CodedPart> parts_of(std::span<const exchange::Run> bucket, const compress::Codec& codec,
                                Rank ranks);

}  // namespace tutti::gradient
