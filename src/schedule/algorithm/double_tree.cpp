// Double binary tree: two trees over all ranks, each sums and hands back one half of the buffer; a rank that
// is interior in one tree is a leaf in the other, so that every rank sends and receives about the whole
// buffer once each way. Latency grows with log2 p; the runner pipelines segments. Each tree is a strand of
// its own: zipped round by round they would wait for each other in a circle. A node adds its children to
// itself: not canonical, the same on all ranks.
//
// clang-format off
// Worked out (allreduce double_tree, 5 ranks; tutti explain reads it back):
//   strand 0
//   round  rank 0  rank 1  rank 2       rank 3  rank 4
//       0  +4[0]           +1[0]                +2[0]
//       1                  +3[0]
//       2          >2[0]   >4[0]        >2[0]   >0[0]
//       3          <2[0]   <4[0]        <2[0]   <0[0]
//       4  >4[0]           >1[0] >3[0]          >2[0]
//   strand 1
//   round  rank 0  rank 1  rank 2  rank 3       rank 4
//       0  +3[1]   +0[1]           +2[1]
//       1                          +4[1]
//       2  >1[1]           >3[1]   >0[1]        >3[1]
//       3  <1[1]           <3[1]   <0[1]        <3[1]
//       4  >3[1]   >0[1]           >2[1] >4[1]
// clang-format on
#include "schedule/algorithm/algorithms.hpp"

namespace tutti::schedule::algorithm {
namespace {

constexpr std::uint32_t tree_count = 2;

std::uint32_t blocks(Shape) {
  return tree_count;
}

std::uint32_t strands(Shape) {
  return tree_count;
}

std::uint32_t rounds(Shape shape, std::uint32_t) {
  return shape.ranks > 1 ? 5 : 0;
}

/// Position 0 hangs above an in-order binary tree of positions 1 .. p-1, in which odd positions are leaves.
struct Node {
  Rank parent = -1;
  std::array<Rank, 2> children{-1, -1};
};

Node node_at(std::uint32_t position, std::uint32_t p) {
  Node node;
  if (position == 0) {
    if (p > 1) node.children[0] = static_cast<Rank>(std::bit_floor(p - 1));
    return node;
  }
  const std::uint32_t level = position & (~position + 1);  // its lowest bit
  const std::uint32_t above = (position ^ level) | (level << 1U);
  node.parent = static_cast<Rank>(above < p ? above : position ^ level);
  if (level == 1) return node;
  std::uint32_t step = level / 2;
  node.children[0] = static_cast<Rank>(position - step);
  // The right subtree may be cut off by p: then its largest part that is left hangs here.
  while (step > 0 && position + step >= p) step /= 2;
  if (step > 0) node.children[1] = static_cast<Rank>(position + step);
  return node;
}

/// The second tree: mirrored for even p, shifted by one for odd p, so that odd positions become even ones.
Rank swap_tree(Rank place, Rank ranks, bool to_rank) {
  if (ranks % 2 == 0) return ranks - 1 - place;
  return to_rank ? (place + 1) % ranks : (place + ranks - 1) % ranks;
}

void emit(Shape shape, std::uint32_t strand, std::uint32_t round, Sink& sink) {
  const auto rank_of = [&](Rank position) {
    if (position < 0 || strand == 0) return position;
    return swap_tree(position, shape.ranks, true);
  };
  const Rank position = strand == 0 ? shape.rank : swap_tree(shape.rank, shape.ranks, false);
  const Node node = node_at(static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(shape.ranks));
  const Rank parent = rank_of(node.parent);
  const Block half{strand, strand + 1};
  // Two receives into one block cannot share a round; a rank without the peer of a round does nothing in it.
  if (round < 2) {
    const Rank child = rank_of(node.children[round]);
    if (child >= 0) sink.recv_reduce(child, half);
  } else if (round == 2) {
    if (parent >= 0) sink.send(parent, half);
  } else if (round == 3) {
    if (parent >= 0) sink.recv(parent, half);
  } else {
    for (const Rank child : node.children) {
      if (child >= 0) sink.send(rank_of(child), half);
    }
  }
}

}  // namespace

const Algorithm double_tree_allreduce{Collective::allreduce,
                                      "double_tree",
                                      "Sanders, Speck, Traff 2009, Two-tree algorithms for full bandwidth "
                                      "broadcast, reduction and scan, section 2",
                                      radix_two,
                                      any_shape,
                                      blocks,
                                      strands,
                                      rounds,
                                      emit};

}  // namespace tutti::schedule::algorithm
