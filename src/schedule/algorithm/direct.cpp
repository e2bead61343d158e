// Direct (slice owner): everybody sends block j to its owner j, which adds all contributions at once in
// canonical order and sends the result to everybody. Two rounds, 2 (p-1)/p of the buffer, p - 1 messages a
// round: the choice for few ranks. Contributions are kept apart until all are there (slots); received one
// after the other they would be added left to right, which is canonical for two ranks only.
//
// clang-format off
// Worked out (allreduce direct, 3 ranks; tutti explain reads it back):
//   round  rank 0                        rank 1                        rank 2
//       0  >1[1] ~2[0] >2[2] ~1[0] =[0]  >2[2] ~0[1] >0[0] ~2[1] =[1]  >0[0] ~1[2] >1[1] ~0[2] =[2]
//       1  >1[0] <2[2] >2[0] <1[1]       >2[1] <0[0] >0[1] <2[2]       >0[2] <1[1] >1[2] <0[0]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

std::uint32_t two_rounds(Shape shape, std::uint32_t) {
  return shape.ranks > 1 ? 2 : 0;
}

std::uint32_t one_round(Shape shape, std::uint32_t) {
  return shape.ranks > 1 ? 1 : 0;
}

/// Peers in the order of their distance, so that not everybody sends to rank 0 first.
void emit_reduce_scatter(Shape shape, std::uint32_t, std::uint32_t, Sink& sink) {
  const Block mine = block_of(shape.rank);
  for (Rank distance = 1; distance < shape.ranks; ++distance) {
    const Rank to = around(shape, shape.rank, distance);
    sink.send(to, block_of(to));
    sink.recv_slot(around(shape, shape.rank, -distance), mine);
  }
  sink.reduce_slots(mine);
}

void emit_allgather(Shape shape, std::uint32_t, std::uint32_t, Sink& sink) {
  for (Rank distance = 1; distance < shape.ranks; ++distance) {
    const Rank from = around(shape, shape.rank, -distance);
    sink.send(around(shape, shape.rank, distance), block_of(shape.rank));
    sink.recv(from, block_of(from));
  }
}

void emit_allreduce(Shape shape, std::uint32_t strand, std::uint32_t round, Sink& sink) {
  round == 0 ? emit_reduce_scatter(shape, strand, round, sink) : emit_allgather(shape, strand, round, sink);
}

void emit_reduce(Shape shape, std::uint32_t, std::uint32_t, Sink& sink) {
  const Block all{0, 1};
  if (shape.rank != shape.root) {
    sink.send(shape.root, all);
    return;
  }
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    if (rank != shape.root) sink.recv_slot(rank, all);
  }
  sink.reduce_slots(all);
}

constexpr std::string_view source =
    "Rabenseifner 2004, Optimization of collective reduction operations, section 4.2 (all-to-all "
    "reduce-scatter)";

}  // namespace

const Algorithm direct_allreduce{Collective::allreduce, "direct",   source,     radix_two,     any_shape,
                                 block_per_rank,        one_strand, two_rounds, emit_allreduce};
const Algorithm direct_reduce_scatter{
    Collective::reduce_scatter, "direct", source, radix_two, any_shape, block_per_rank, one_strand, one_round,
    emit_reduce_scatter};
const Algorithm direct_allgather{Collective::allgather, "direct",   source,    radix_two,     any_shape,
                                 block_per_rank,        one_strand, one_round, emit_allgather};
const Algorithm direct_reduce{Collective::reduce, "direct",   source,    radix_two,  any_shape,
                              one_block,          one_strand, one_round, emit_reduce};

}  // namespace tutti::schedule::algorithm
