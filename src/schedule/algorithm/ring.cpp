// Ring: every rank talks to its two neighbours only. Reduce-scatter, then allgather, p - 1 rounds each; each
// rank sends 2 (p-1)/p of the buffer. Sums run around the ring, so that every block is added in another
// order: not canonical from three ranks up, but the same on all ranks.
//
// clang-format off
// Worked out (allreduce ring, 3 ranks; tutti explain reads it back):
//   round  rank 0       rank 1       rank 2
//       0  >1[0] +2[2]  >2[1] +0[0]  >0[2] +1[1]
//       1  >1[2] +2[1]  >2[0] +0[2]  >0[1] +1[0]
//       2  >1[1] <2[0]  >2[2] <0[1]  >0[0] <1[2]
//       3  >1[0] <2[2]  >2[1] <0[0]  >0[2] <1[1]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

std::uint32_t half_rounds(Shape shape, std::uint32_t) {
  return static_cast<std::uint32_t>(shape.ranks - 1);
}

std::uint32_t full_rounds(Shape shape, std::uint32_t strand) {
  return 2 * half_rounds(shape, strand);
}

/// In round t rank r passes block first - t on and adds to block first - t - 1, around the ring.
void reduce_round(Shape shape, std::int64_t first, std::uint32_t round, Sink& sink) {
  const std::int64_t t = round;
  sink.send(around(shape, shape.rank, 1), block_of(around(shape, shape.rank, first - t)));
  sink.recv_reduce(around(shape, shape.rank, -1), block_of(around(shape, shape.rank, first - t - 1)));
}

void gather_round(Shape shape, std::int64_t first, std::uint32_t round, Sink& sink) {
  const std::int64_t t = round;
  sink.send(around(shape, shape.rank, 1), block_of(around(shape, shape.rank, first - t)));
  sink.recv(around(shape, shape.rank, -1), block_of(around(shape, shape.rank, first - t - 1)));
}

void emit_allreduce(Shape shape, std::uint32_t, std::uint32_t round, Sink& sink) {
  const auto half = static_cast<std::uint32_t>(shape.ranks - 1);
  if (round < half) {
    reduce_round(shape, 0, round, sink);
  } else {
    gather_round(shape, 1, round - half, sink);
  }
}

// Block r must end on rank r: one place later around the ring than in allreduce.
void emit_reduce_scatter(Shape shape, std::uint32_t, std::uint32_t round, Sink& sink) {
  reduce_round(shape, -1, round, sink);
}

void emit_allgather(Shape shape, std::uint32_t, std::uint32_t round, Sink& sink) {
  gather_round(shape, 0, round, sink);
}

constexpr std::string_view source =
    "Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms, section 4";

}  // namespace

const Algorithm ring_allreduce{Collective::allreduce, "ring",     source,      radix_two,     any_shape,
                               block_per_rank,        one_strand, full_rounds, emit_allreduce};
const Algorithm ring_reduce_scatter{
    Collective::reduce_scatter, "ring", source, radix_two, any_shape, block_per_rank, one_strand, half_rounds,
    emit_reduce_scatter};
const Algorithm ring_allgather{Collective::allgather, "ring",     source,      radix_two,     any_shape,
                               block_per_rank,        one_strand, half_rounds, emit_allgather};

}  // namespace tutti::schedule::algorithm
