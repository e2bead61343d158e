// Recursive doubling: in round s ranks at distance 2^s exchange the whole buffer and both add. log2 p rounds
// of the whole buffer: the choice for short messages. Ranks beyond a power of two fold with their neighbour
// first and get the result last. Canonical at every rank count, because halves that are combined are aligned.
//
// clang-format off
// Worked out (allreduce recursive_doubling, 5 ranks; tutti explain reads it back):
//   round  rank 0       rank 1  rank 2       rank 3       rank 4
//       0  +1[0]        >0[0]
//       1  >2[0] +2[0]          >0[0] +0[0]  >4[0] +4[0]  >3[0] +3[0]
//       2  >3[0] +3[0]          >4[0] +4[0]  >0[0] +0[0]  >2[0] +2[0]
//       3  >1[0]        <0[0]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

std::uint32_t rounds(Shape shape, std::uint32_t) {
  const Fold fold(shape.ranks);
  return fold.levels() + (fold.folded > 0 ? 2 : 0);
}

void emit(Shape shape, std::uint32_t, std::uint32_t round, Sink& sink) {
  const Fold fold(shape.ranks);
  const Block all{0, 1};
  const bool folds = fold.folded > 0;
  const bool aside = fold.aside(shape.rank);
  const bool pair = fold.in_pair(shape.rank);
  if (folds && round == 0) {
    if (aside) sink.send(shape.rank - 1, all);
    if (pair && !aside) sink.recv_reduce(shape.rank + 1, all);
    return;
  }
  if (folds && round == fold.levels() + 1) {
    if (aside) sink.recv(shape.rank - 1, all);
    if (pair && !aside) sink.send(shape.rank + 1, all);
    return;
  }
  if (aside) return;
  const std::uint32_t distance = 1U << (folds ? round - 1 : round);
  const Rank peer = fold.worker(fold.leaf(shape.rank) ^ distance);
  sink.send(peer, all);
  sink.recv_reduce(peer, all);
}

}  // namespace

const Algorithm recursive_doubling_allreduce{
    Collective::allreduce,
    "recursive_doubling",
    "Thakur, Rabenseifner, Gropp 2005, Optimization of collective communication, section 4.5",
    radix_two,
    any_shape,
    one_block,
    one_strand,
    rounds,
    emit};

}  // namespace tutti::schedule::algorithm
