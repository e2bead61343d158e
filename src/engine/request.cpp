#include "engine/request.hpp"

#include <numeric>

namespace tutti::engine {

using schedule::Collective;

bool Request::in_place(Rank rank) const {
  const auto r = static_cast<std::size_t>(rank);
  switch (collective) {
    case Collective::reduce_scatter:
      return output == static_cast<const char*>(input) + r * count * element_bytes();
    case Collective::allgather: {
      const std::size_t offset =
          counts.empty() ? r * count : std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
      return input == static_cast<const char*>(output) + offset * element_bytes();
    }
    case Collective::allreduce:
    case Collective::broadcast:
    case Collective::reduce: break;
  }
  return input == output;
}

}  // namespace tutti::engine
