// One shot: everybody sends its whole contribution to everybody, and adds up all of them itself, in canonical
// order. One round, (p-1) times the buffer: the choice for short messages among few ranks, where a round
// costs more than the bytes.
//
// clang-format off
// Worked out (allreduce one_shot, 3 ranks; tutti explain reads it back):
//   round  rank 0                        rank 1                        rank 2
//       0  >1[0] ~2[0] >2[0] ~1[0] =[0]  >2[0] ~0[0] >0[0] ~2[0] =[0]  >0[0] ~1[0] >1[0] ~0[0] =[0]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

std::uint32_t rounds(Shape shape, std::uint32_t) {
  return shape.ranks > 1 ? 1 : 0;
}

void emit(Shape shape, std::uint32_t, std::uint32_t, Sink& sink) {
  const Block all{0, 1};
  for (Rank distance = 1; distance < shape.ranks; ++distance) {
    sink.send(around(shape, shape.rank, distance), all);
    sink.recv_slot(around(shape, shape.rank, -distance), all);
  }
  sink.reduce_slots(all);
}

constexpr std::string_view source = "all-to-all broadcast, then everybody reduces; common, no one source";

}  // namespace

const Algorithm one_shot_allreduce{
    Collective::allreduce, "one_shot", source, radix_two, any_shape, one_block, one_strand, rounds, emit};

}  // namespace tutti::schedule::algorithm
