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

bool order_is_free(const Request& request, Rank ranks) {
  if (request.collective == Collective::allgather || request.collective == Collective::broadcast) return true;
  return !is_floating(request.type) || request.op == Op::min || request.op == Op::max || ranks <= 2;
}

}  // namespace tutti::engine
