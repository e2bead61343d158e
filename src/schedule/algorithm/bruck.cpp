// Bruck: in round s every rank hands all blocks that it has (at most 2^s) to the rank 2^s before it.
// ceil(log2 p) rounds at every rank count: the choice for short blocks. Ranges that wrap around the last
// block go as two messages.
//
// clang-format off
// Worked out (allgather bruck, 5 ranks; tutti explain reads it back):
//   round  rank 0           rank 1           rank 2               rank 3           rank 4
//       0  >4[0] <1[1]      >0[1] <2[2]      >1[2] <3[3]          >2[3] <4[4]      >3[4] <0[0]
//       1  >3[0-1] <2[2-3]  >4[1-2] <3[3-4]  >0[2-3] <4[4] <4[0]  >1[3-4] <0[0-1]  >2[4] >2[0] <1[1-2]
//       2  >1[0] <4[4]      >2[1] <0[0]      >3[2] <1[1]          >4[3] <2[2]      >0[4] <3[3]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

std::uint32_t rounds(Shape shape, std::uint32_t) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint32_t>(shape.ranks - 1)));
}

void emit(Shape shape, std::uint32_t, std::uint32_t round, Sink& sink) {
  const auto p = static_cast<std::uint32_t>(shape.ranks);
  const std::uint32_t distance = 1U << round;
  const std::uint32_t count = distance < p - distance ? distance : p - distance;
  const Rank to = around(shape, shape.rank, -static_cast<std::int64_t>(distance));
  const Rank from = around(shape, shape.rank, distance);
  const auto each_part = [&](Rank first, const auto& act) {
    const auto begin = static_cast<std::uint32_t>(first);
    const std::uint32_t end = begin + count;
    act(Block{begin, end < p ? end : p});
    if (end > p) act(Block{0, end - p});
  };
  each_part(shape.rank, [&](Block part) { sink.send(to, part); });
  each_part(from, [&](Block part) { sink.recv(from, part); });
}

}  // namespace

const Algorithm bruck_allgather{Collective::allgather,
                                "bruck",
                                "Bruck, Ho, Kipnis, Upfal, Weathersby 1997, Efficient algorithms for "
                                "all-to-all communications, section 4",
                                radix_two,
                                any_shape,
                                block_per_rank,
                                one_strand,
                                rounds,
                                emit};

}  // namespace tutti::schedule::algorithm
