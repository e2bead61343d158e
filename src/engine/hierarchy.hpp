#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/lookout.hpp"
#include "engine/request.hpp"

namespace tutti::engine {

class CommunicatorState;

/// How the ranks of a communicator lie on nodes. Nodes are numbered by their lowest ranks, and ranks of a
/// node by their order.
struct NodeLayout {
  std::vector<Rank> sizes;     ///< ranks of each node
  std::vector<Rank> node_of;   ///< of each rank
  std::vector<Rank> place_of;  ///< of each rank in its node
  /// Adding up each node in canonical order, and then the nodes' sums, is adding all ranks in canonical
  /// order.
  bool canonical = false;

  Rank nodes() const { return static_cast<Rank>(sizes.size()); }

  Rank largest() const;

  /// All nodes have as many ranks: each of them can have a rail.
  bool even() const;
};

/// From the node of each rank.
NodeLayout layout_of(const std::vector<std::int32_t>& nodes);

/// Allreduce over several nodes: the ranks of a node add up, each a slice (reduce-scatter in shared memory);
/// each rank brings its slice together with the ranks of the same place on the other nodes, its rail; then
/// the node gathers. In segments, so that the rails never idle while the nodes work. Short messages, and all
/// where nodes have unlike numbers of ranks, go through one rank of each node.
class Hierarchy {
 public:
  /// `all` is of all ranks, and outlives this; `node` and `rail` are this rank's communicators of those
  /// names.
  Hierarchy(NodeLayout layout, Lookout& all, std::shared_ptr<CommunicatorState> node,
            std::shared_ptr<CommunicatorState> rail);

  bool accepts(const Request& request) const;
  /// `sequence` is the call's number among all ranks; `label` starts error reports. The hierarchy must
  /// outlive the operation.
  std::unique_ptr<Operation> start(const Request& request, std::uint32_t sequence, std::string label);

  CommunicatorState& node() const { return *node_; }

  CommunicatorState& rail() const { return *rail_; }

  /// `in_node` predicts a collective of a node's ranks: (request, collective, ranks).
  double predict(const Request& request,
                 const std::function<double(Request, schedule::Collective, Rank)>& in_node) const;

  /// Into how many parts the ranks of a node cut a segment.
  Rank slices() const { return layout_.even() ? layout_.sizes.front() : 1; }

  /// "rails between 2 nodes of 4 ranks, …".
  std::string describe() const;

 private:
  friend class HierarchyOperation;

  NodeLayout layout_;
  Lookout& all_;
  std::shared_ptr<CommunicatorState> node_;
  std::shared_ptr<CommunicatorState> rail_;
  /// One operation after the other: their parts are numbered as they are made, on every rank in one order.
  std::uint64_t next_ = 0;
  std::uint64_t current_ = 0;
};

}  // namespace tutti::engine
