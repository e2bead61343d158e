#include <array>

#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule {

std::span<const Algorithm> algorithms() {
  using namespace algorithm;
  static const std::array table{
      recursive_doubling_allreduce,
      halving_doubling_allreduce,
      direct_allreduce,
      one_shot_allreduce,
      ring_allreduce,
      double_tree_allreduce,
      direct_reduce_scatter,
      ring_reduce_scatter,
      bruck_allgather,
      ring_allgather,
      direct_allgather,
      binomial_broadcast,
      scatter_allgather_broadcast,
      binomial_reduce,
      direct_reduce,
  };
  return table;
}

}  // namespace tutti::schedule
