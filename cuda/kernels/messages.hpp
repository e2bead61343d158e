#pragma once

#include <cstddef>

namespace tutti::cuda {

/// Messages of at most so many ranks are summed up by one launch.
inline constexpr unsigned most_peers = 64;

/// Messages with the same elements of every rank, in the order in which they are added.
struct Messages {
  const std::byte* of[most_peers];
  unsigned count;
};

}  // namespace tutti::cuda
