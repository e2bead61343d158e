// Binomial reduce in canonical order for every root: the partial sum of a node of the canonical tree is held
// by the root if the root is below that node, else by its lowest rank. So the order of additions does not
// depend on the root, as it does where ranks are renumbered. 1 + log2 p rounds of the whole buffer; the
// runner pipelines segments.
//
// clang-format off
// Worked out (reduce binomial, 6 ranks, root 3; tutti explain reads it back):
//   round  rank 0  rank 1  rank 2  rank 3  rank 4  rank 5
//       0  +1[0]   >0[0]   >3[0]   +2[0]
//       1  >3[0]                   +0[0]   +5[0]   >4[0]
//       2                          +4[0]   >3[0]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

std::uint32_t rounds(Shape shape, std::uint32_t) {
  const Fold fold(shape.ranks);
  return fold.levels() + (fold.folded > 0 ? 1 : 0);
}

/// Who holds the sum of leaves [first, last).
Rank holder(const Fold& fold, Rank root, std::uint32_t first, std::uint32_t last) {
  const std::uint32_t leaf = fold.leaf(root);
  return first <= leaf && leaf < last ? root : fold.worker(first);
}

void emit(Shape shape, std::uint32_t, std::uint32_t round, Sink& sink) {
  const Fold fold(shape.ranks);
  const Block all{0, 1};
  const std::uint32_t leaf = fold.leaf(shape.rank);
  if (fold.folded > 0) {
    if (round == 0) {
      if (!fold.in_pair(shape.rank)) return;
      const Rank neighbour = fold.aside(shape.rank) ? shape.rank - 1 : shape.rank + 1;
      const Rank holds = holder(fold, shape.root, leaf, leaf + 1);
      holds == shape.rank ? sink.recv_reduce(neighbour, all) : sink.send(holds, all);
      return;
    }
    --round;
  }
  const std::uint32_t size = 1U << round;
  const std::uint32_t first = leaf / (2 * size) * (2 * size);
  const Rank left = holder(fold, shape.root, first, first + size);
  const Rank right = holder(fold, shape.root, first + size, first + 2 * size);
  if (shape.rank != left && shape.rank != right) return;
  const Rank holds = right == shape.root ? right : left;
  holds == shape.rank ? sink.recv_reduce(holds == left ? right : left, all) : sink.send(holds, all);
}

}  // namespace

const Algorithm binomial_reduce{Collective::reduce,
                                "binomial",
                                "Thakur, Rabenseifner, Gropp 2005, section 4.4 (binomial tree); canonical "
                                "order for every root is tutti's",
                                radix_two,
                                any_shape,
                                one_block,
                                one_strand,
                                rounds,
                                emit};

}  // namespace tutti::schedule::algorithm
