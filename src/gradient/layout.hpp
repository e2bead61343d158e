#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::gradient {

/// What a bucket holds: gradients as they are, encoded ones, or the rows of one sparse parameter, which does
/// not lie in the buffer.
enum class Kind : std::uint8_t { exact, encoded, sparse };

/// A run of the flat buffer that travels as one message, and the parameters that it holds.
struct Bucket {
  std::size_t first = 0;  ///< element
  std::size_t count = 0;
  std::size_t parameters = 0;
  Kind kind = Kind::exact;
};

/// Where gradients lie, and which go together. What is ready last lies first, so that the usual order
/// (backwards) is that of registration, and a bucket is one run.
struct Layout {
  std::vector<std::size_t> offsets;    ///< of each parameter, in elements
  std::vector<std::size_t> bucket_of;  ///< of each parameter
  std::vector<Bucket> buckets;         ///< in the order in which they start
  std::size_t size = 0;                ///< elements in all
};

/// `order`: the parameters' numbers in the order in which they are ready. A bucket is closed once it has
/// reached its capacity, or before a parameter of another kind; a sparse one is alone in its own. No
/// parameter is cut.
Layout lay_out(std::span<const std::size_t> counts, std::span<const Kind> kinds,
               std::span<const std::uint32_t> order, std::size_t first_bucket_bytes,
               std::size_t bucket_bytes);

}  // namespace tutti::gradient
