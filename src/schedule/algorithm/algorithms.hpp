#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "schedule/schedule.hpp"

/// One definition an algorithm; table.cpp puts them in order. Each file says where the algorithm comes from
/// and shows it worked out.
namespace tutti::schedule::algorithm {

extern const Algorithm ring_allreduce;
extern const Algorithm ring_reduce_scatter;
extern const Algorithm ring_allgather;
extern const Algorithm recursive_doubling_allreduce;
extern const Algorithm halving_doubling_allreduce;
extern const Algorithm double_tree_allreduce;
extern const Algorithm direct_allreduce;
extern const Algorithm one_shot_allreduce;
extern const Algorithm direct_reduce_scatter;
extern const Algorithm direct_allgather;
extern const Algorithm direct_reduce;
extern const Algorithm bruck_allgather;
extern const Algorithm binomial_broadcast;
extern const Algorithm scatter_allgather_broadcast;
extern const Algorithm binomial_reduce;

// What most algorithms share.
inline constexpr std::array<std::uint32_t, 1> radix_two{2};

inline bool any_shape(Shape) {
  return true;
}

inline std::uint32_t one_block(Shape) {
  return 1;
}

inline std::uint32_t block_per_rank(Shape shape) {
  return static_cast<std::uint32_t>(shape.ranks);
}

inline std::uint32_t one_strand(Shape) {
  return 1;
}

/// rank + offset around a ring of ranks.
inline Rank around(Shape shape, Rank rank, std::int64_t offset) {
  const std::int64_t p = shape.ranks;
  return static_cast<Rank>(((rank + offset) % p + p) % p);
}

inline Block block_of(Rank rank) {
  return {static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(rank) + 1};
}

/// Ranks folded in neighbouring pairs until a power of two is left (design ruling on canonical order): the
/// first `folded` pairs act as one.
struct Fold {
  std::uint32_t leaves;  ///< the power of two
  std::uint32_t folded;  ///< pairs

  explicit Fold(Rank ranks)
      : leaves(std::bit_floor(static_cast<std::uint32_t>(ranks))),
        folded(static_cast<std::uint32_t>(ranks) - leaves) {}

  std::uint32_t levels() const { return static_cast<std::uint32_t>(std::countr_zero(leaves)); }

  bool in_pair(Rank rank) const { return static_cast<std::uint32_t>(rank) < 2 * folded; }

  /// The rank of a pair that steps aside while its neighbour works for both.
  bool aside(Rank rank) const { return in_pair(rank) && rank % 2 == 1; }

  std::uint32_t leaf(Rank rank) const {
    const auto r = static_cast<std::uint32_t>(rank);
    return in_pair(rank) ? r / 2 : r - folded;
  }

  /// Lowest rank of a leaf: the one that works.
  Rank worker(std::uint32_t leaf_index) const {
    return static_cast<Rank>(leaf_index < folded ? 2 * leaf_index : leaf_index + folded);
  }
};

}  // namespace tutti::schedule::algorithm
