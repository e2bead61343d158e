#include "engine/hierarchy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "base/canonical.hpp"
#include "base/random.hpp"
#include "engine/communicator_state.hpp"
#include "kernel/kernel.hpp"

namespace tutti::engine {

using schedule::Collective;

namespace {

/// Messages up to here go through one rank of each node: fewer messages count more than the other ranks'
/// wires.
constexpr std::size_t leader_bytes = 32 << 10;

/// What goes through a node at a time. Small enough that wires start soon, large enough that a node's
/// synchronization is little beside it.
constexpr std::size_t segment_bytes = 1 << 20;

/// Segments whose slices may be on the wires while the node adds up the next one.
constexpr std::size_t ahead = 3;

}  // namespace

Rank NodeLayout::largest() const {
  return *std::ranges::max_element(sizes);
}

bool NodeLayout::even() const {
  return std::ranges::all_of(sizes, [this](Rank size) { return size == sizes.front(); });
}

namespace {

/// Stands for the tree in which these leaves are added: commutative as additions are, and like them not
/// associative.
std::uint64_t tree_of(std::span<const std::uint64_t> leaves) {
  return base::canonical_sum(
      static_cast<std::uint32_t>(leaves.size()), [&](std::uint32_t i) { return leaves[i]; },
      [](std::uint64_t a, std::uint64_t b) {
        return base::mix(base::mix(std::min(a, b) + 1) ^ std::max(a, b) * 0x9e3779b97f4a7c15ULL);
      });
}

}  // namespace

NodeLayout layout_of(const std::vector<std::int32_t>& nodes) {
  NodeLayout layout;
  std::vector<std::int32_t> numbers;
  std::vector<std::uint64_t> leaves;
  std::vector<std::vector<std::uint64_t>> leaves_of;
  for (const std::int32_t node : nodes) {
    const auto at = static_cast<std::size_t>(std::ranges::find(numbers, node) - numbers.begin());
    if (at == numbers.size()) {
      numbers.push_back(node);
      layout.sizes.push_back(0);
      leaves_of.emplace_back();
    }
    layout.node_of.push_back(static_cast<Rank>(at));
    layout.place_of.push_back(layout.sizes[at]++);
    leaves.push_back(base::mix(leaves.size() + 1));
    leaves_of[at].push_back(leaves.back());
  }
  std::vector<std::uint64_t> sums;
  for (const auto& of_node : leaves_of) sums.push_back(tree_of(of_node));
  layout.canonical = tree_of(sums) == tree_of(leaves);
  return layout;
}

/// Node operations in one order on every rank; rails as they become ready.
class HierarchyOperation final : public Operation {
 public:
  HierarchyOperation(Hierarchy& hierarchy, const Request& request, std::uint32_t sequence, std::string label)
      : hierarchy_(hierarchy),
        request_(request),
        name_(request.name),
        sequence_(sequence),
        label_(std::move(label)) {
    request_.algorithm = {};  // of the parts
    request_.name = name_;    // the caller's text is gone when the later parts are made
    // Parts do not have all that must be the same in the whole.
    request_.context = one_word(hierarchy.all_.calls().at(sequence)) | 1U;
    const auto slices = static_cast<std::size_t>(hierarchy.slices());
    const std::size_t size = request.element_bytes();
    std::size_t done = 0;
    if (request.count * size > leader_bytes) {
      const std::size_t most = std::max(segment_bytes / size / slices, std::size_t{1}) * slices;
      const std::size_t whole = request.count / slices * slices;
      for (; done < whole; done += parts_.back().count)
        parts_.push_back({done, std::min(most, whole - done), slices > 1});
    }
    if (done < request.count || request.count == 0) parts_.push_back({done, request.count - done, false});
  }

  ~HierarchyOperation() override {
    // Those behind it would wait for its turn to end.
    if (!over_) hierarchy_.all_.tell(transport::Notice::Kind::peer_lost, sequence_, label_ + ": given up");
  }

  Turn advance() override {
    if (ticket_ != hierarchy_.current_) {
      hierarchy_.all_.check([this] { return describe(); });
      return Turn::idle;
    }
    try {
      bool moved = false;
      bool more = true;
      while (more) {
        more = advance_rails();
        if (advance_node()) more = true;
        moved = moved || more;
      }
      if (moved) next_inquiry_ = Lookout::first_inquiry;
      if (gathered_ < parts_.size()) return moved ? Turn::moved : Turn::idle;
      ++hierarchy_.current_;
      over_ = true;
      return Turn::done;
    } catch (const std::exception& error) {
      tell_all(error);
      throw;
    }
  }

  std::string describe() const override {
    if (ticket_ != hierarchy_.current_) return fmt::format("{}: waits for the operation before it", label_);
    if (node_operation_) return fmt::format("{}: {}", label_, node_operation_->describe());
    for (const Part& part : parts_) {
      if (part.rail) return fmt::format("{}: {}", label_, part.rail->describe());
    }
    return fmt::format("{}: waits for nothing", label_);
  }

  void look_around(Seconds idle) override {
    try {
      hierarchy_.all_.look(sequence_, idle, next_inquiry_, [this] { return describe(); });
      if (node_operation_) node_operation_->look_around(idle);
      for (const Part& part : parts_) {
        if (part.rail) part.rail->look_around(idle);
      }
    } catch (const std::exception& error) {
      tell_all(error);
      throw;
    }
  }

  void abandon(const std::string& reason) noexcept override {
    over_ = true;
    hierarchy_.all_.tell(transport::Notice::Kind::timeout, sequence_, reason);
    tell_node(transport::Notice::Kind::timeout, reason);
    if (node_operation_) node_operation_->abandon(reason);
    for (const Part& part : parts_) {
      if (part.rail) part.rail->abandon(reason);
    }
  }

 private:
  struct Part {
    std::size_t first = 0;
    std::size_t count = 0;
    bool sliced = false;   ///< every rank a slice; otherwise the node's first rank does it
    bool crossed = false;  ///< this rank's share has been to the other nodes
    std::unique_ptr<Operation> rail = {};
  };

  void tell_node(transport::Notice::Kind kind, const std::string& text) const noexcept {
    if (node::Group* group = hierarchy_.node_->node()) group->say_failed(kind, text);
  }

  /// What was found out on this node or on this rail is news to the others.
  void tell_all(const std::exception& error) noexcept {
    over_ = true;
    const transport::Notice::Kind kind = kind_of(error);
    hierarchy_.all_.tell(kind, sequence_, error.what());
    tell_node(kind, error.what());
  }

  bool leads() const { return hierarchy_.node_->rank() == 0; }

  const std::byte* input(std::size_t element) const {
    return static_cast<const std::byte*>(request_.input) + element * request_.element_bytes();
  }

  std::byte* output(std::size_t element) const {
    return static_cast<std::byte*>(request_.output) + element * request_.element_bytes();
  }

  /// The elements of this rank's slice of a part.
  std::pair<std::size_t, std::size_t> share(const Part& part) const {
    if (!part.sliced) return {part.first, part.count};
    const std::size_t slice = part.count / static_cast<std::size_t>(hierarchy_.slices());
    return {part.first + slice * static_cast<std::size_t>(hierarchy_.node_->rank()), slice};
  }

  bool advance_rails() {
    bool moved = false;
    for (std::size_t k = gathered_; k < reduced_; ++k) {
      Part& part = parts_[k];
      if (!part.rail) continue;
      const Turn turn = part.rail->advance();
      moved = moved || turn != Turn::idle;
      if (turn != Turn::done) continue;
      part.rail.reset();
      part.crossed = true;
    }
    return moved;
  }

  bool advance_node() {
    if (!node_operation_ && !start_node_operation()) return false;
    const Turn turn = node_operation_->advance();
    if (turn != Turn::done) return turn == Turn::moved;
    node_operation_.reset();
    if (gathers_) {
      ++gathered_;
    } else {
      start_rail(parts_[reduced_]);
      ++reduced_;
    }
    return true;
  }

  /// As long as there are fewer segments ahead than allowed, add up the next; else gather the oldest, once it
  /// has crossed. The order depends on nothing but the number of parts.
  bool start_node_operation() {
    if (reduced_ < parts_.size() && reduced_ - gathered_ < ahead) {
      gathers_ = false;
      node_operation_ = hierarchy_.node_->make(reduction(parts_[reduced_]));
      return true;
    }
    if (gathered_ == parts_.size() || !parts_[gathered_].crossed) return false;
    gathers_ = true;
    node_operation_ = hierarchy_.node_->make(gathering(parts_[gathered_]));
    return true;
  }

  Request reduction(const Part& part) const {
    Request request = request_;
    request.op = request_.op == Op::average ? Op::sum : request_.op;
    request.input = input(part.first);
    request.root = 0;
    if (part.sliced) {
      const auto [first, count] = share(part);
      request.collective = Collective::reduce_scatter;
      request.output = output(first);
      request.count = count;
    } else {
      request.collective = Collective::reduce;
      request.output = output(part.first);
      request.count = part.count;
    }
    return request;
  }

  Request gathering(const Part& part) const {
    const auto [first, count] = share(part);
    Request request = request_;
    request.prescale = 1.0;
    request.root = 0;
    request.collective = part.sliced ? Collective::allgather : Collective::broadcast;
    request.input = output(first);
    request.output = output(part.first);
    request.count = count;
    return request;
  }

  void start_rail(Part& part) {
    if (!part.sliced && !leads()) {
      part.crossed = true;
      return;
    }
    const auto [first, count] = share(part);
    Request request = request_;
    request.prescale = 1.0;
    request.input = request.output = output(first);
    request.count = count;
    request.contributors = hierarchy_.layout_.node_of.size();
    part.rail = hierarchy_.rail_->make(request);
  }

  Hierarchy& hierarchy_;
  const std::uint64_t ticket_ = hierarchy_.next_++;
  Request request_;
  std::string name_;
  std::uint32_t sequence_;
  std::string label_;
  Seconds next_inquiry_ = Lookout::first_inquiry;
  bool over_ = false;  ///< done, or the others have been told
  std::vector<Part> parts_;
  std::size_t reduced_ = 0;   ///< parts that the node has added up
  std::size_t gathered_ = 0;  ///< parts that are complete
  bool gathers_ = false;
  std::unique_ptr<Operation> node_operation_;
};

Hierarchy::Hierarchy(NodeLayout layout, Lookout& all, std::shared_ptr<CommunicatorState> node,
                     std::shared_ptr<CommunicatorState> rail)
    : layout_(std::move(layout)), all_(all), node_(std::move(node)), rail_(std::move(rail)) {}

std::string Hierarchy::describe() const {
  if (layout_.even())
    return fmt::format("rails between {} nodes of {} ranks, shared memory inside", layout_.nodes(),
                       layout_.sizes.front());
  return fmt::format("one rank of each of {} nodes, shared memory inside ({} ranks){}", layout_.nodes(),
                     fmt::join(layout_.sizes, " + "),
                     layout_.canonical ? "" : "; messages between all where the order of additions counts");
}

double Hierarchy::predict(const Request& request,
                          const std::function<double(Request, Collective, Rank)>& in_node) const {
  const std::size_t bytes = request.count * request.element_bytes();
  Request wire = request;
  wire.algorithm = {};
  if (bytes <= leader_bytes) {
    return in_node(request, Collective::reduce, layout_.largest()) +
           rail_->predict(wire, {.path = Path::schedule}) +
           in_node(request, Collective::broadcast, layout_.largest());
  }
  Request part = request;
  part.count = wire.count = request.count / static_cast<std::size_t>(slices());
  const double node = in_node(part, Collective::reduce_scatter, layout_.largest()) +
                      in_node(part, Collective::allgather, layout_.largest());
  const double rails = rail_->predict(wire, {.path = Path::schedule});
  // One of them fills the time; of the other only the first and the last segment show.
  const double segments = std::max(1.0, static_cast<double>(bytes) / segment_bytes);
  return std::max(node, rails) + std::min(node, rails) / segments;
}

bool Hierarchy::accepts(const Request& request) const {
  if (request.collective != Collective::allreduce) return false;
  // Partial sums of half types, and of integer averages, are wider than the buffers they would be put in.
  if (kernel::accumulator(request.type, request.op) != request.type) return false;
  const bool free = !is_floating(request.type) || request.op == Op::min || request.op == Op::max;
  return layout_.canonical || request.any_order || free;
}

std::unique_ptr<Operation> Hierarchy::start(const Request& request, std::uint32_t sequence,
                                            std::string label) {
  return std::make_unique<HierarchyOperation>(*this, request, sequence, std::move(label));
}

}  // namespace tutti::engine
