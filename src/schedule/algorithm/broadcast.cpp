// Broadcast. binomial: a k-nomial tree (k is the radix), ceil(log_k p) rounds of the whole buffer: short
// messages. scatter_allgather: halves go down a binomial tree until every rank has its block, then around a
// ring: about twice the buffer per rank whatever p: long messages. Ranks are numbered from the root: nothing
// is added, so no order suffers.
//
// clang-format off
// Worked out (broadcast binomial, 6 ranks; tutti explain reads it back):
//   round  rank 0  rank 1  rank 2  rank 3  rank 4  rank 5
//       0  >4[0]                           <0[0]
//       1  >2[0]           <0[0]
//       2  >1[0]   <0[0]   >3[0]   <2[0]   >5[0]   <4[0]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

constexpr std::array<std::uint32_t, 3> radices{2, 4, 8};
constexpr std::string_view source =
    "Thakur, Rabenseifner, Gropp 2005, Optimization of collective communication, section 4.2";

std::uint32_t log_ceil(std::uint32_t p, std::uint32_t radix) {
  std::uint32_t levels = 0;
  for (std::uint64_t reach = 1; reach < p; reach *= radix) ++levels;
  return levels;
}

std::uint64_t power(std::uint64_t radix, std::uint32_t exponent) {
  std::uint64_t result = 1;
  while (exponent-- > 0) result *= radix;
  return result;
}

struct Virtual {
  Shape shape;
  std::uint64_t p;
  std::uint64_t place;  ///< counted from the root

  explicit Virtual(Shape s)
      : shape(s),
        p(static_cast<std::uint64_t>(s.ranks)),
        place(static_cast<std::uint64_t>(around(s, s.rank, -std::int64_t{s.root}))) {}

  Rank rank(std::uint64_t at) const { return around(shape, shape.root, static_cast<std::int64_t>(at)); }
};

std::uint32_t tree_rounds(Shape shape, std::uint32_t) {
  return log_ceil(static_cast<std::uint32_t>(shape.ranks), shape.radix);
}

void emit_tree(Shape shape, std::uint32_t strand, std::uint32_t round, Sink& sink) {
  const Virtual me(shape);
  const std::uint64_t span = power(shape.radix, tree_rounds(shape, strand) - 1 - round);
  if (me.place % span != 0) return;
  const std::uint64_t digit = me.place / span % shape.radix;
  if (digit != 0) {
    sink.recv(me.rank(me.place - digit * span), {0, 1});
    return;
  }
  for (std::uint64_t j = 1; j < shape.radix && me.place + j * span < me.p; ++j)
    sink.send(me.rank(me.place + j * span), {0, 1});
}

std::uint32_t scatter_rounds(Shape shape, std::uint32_t) {
  const auto p = static_cast<std::uint32_t>(shape.ranks);
  return p == 1 ? 0 : log_ceil(p, 2) + p - 1;
}

void emit_scatter_allgather(Shape shape, std::uint32_t, std::uint32_t round, Sink& sink) {
  const Virtual me(shape);
  const std::uint32_t levels = log_ceil(static_cast<std::uint32_t>(shape.ranks), 2);
  const auto block = [&](std::uint64_t first, std::uint64_t last) {
    return Block{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last < me.p ? last : me.p)};
  };
  if (round < levels) {
    const std::uint64_t span = std::uint64_t{1} << (levels - 1 - round);
    if (me.place % (2 * span) == 0 && me.place + span < me.p) {
      sink.send(me.rank(me.place + span), block(me.place + span, me.place + 2 * span));
    } else if (me.place % (2 * span) == span) {
      sink.recv(me.rank(me.place - span), block(me.place, me.place + span));
    }
    return;
  }
  const std::uint64_t t = round - levels;
  const std::uint64_t out = (me.place + me.p - t) % me.p;
  const std::uint64_t in = (me.place + 2 * me.p - t - 1) % me.p;
  sink.send(me.rank((me.place + 1) % me.p), block(out, out + 1));
  sink.recv(me.rank((me.place + me.p - 1) % me.p), block(in, in + 1));
}

}  // namespace

const Algorithm binomial_broadcast{
    Collective::broadcast, "binomial", source, radices, any_shape, one_block, one_strand,
    tree_rounds,           emit_tree};
const Algorithm scatter_allgather_broadcast{
    Collective::broadcast, "scatter_allgather",   source, radix_two, any_shape, block_per_rank, one_strand,
    scatter_rounds,        emit_scatter_allgather};

}  // namespace tutti::schedule::algorithm
