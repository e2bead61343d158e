// Where the ranks of a communicator are, and the memory that they share.
#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "engine/communicator_state.hpp"
#include "engine/workspace.hpp"

namespace tutti::engine {

using schedule::Collective;

namespace {

/// With less, messages are better.
constexpr std::size_t smallest_cell = 4096;

/// Pieces that stay in a core's own cache where each rank has one. Ranks that share cores change places
/// between pieces, which costs more than cache misses: longer ones then.
constexpr std::size_t cell_of_a_core = 64 << 10;
constexpr std::size_t cell_of_many = 256 << 10;

}  // namespace

transport::NodePlace CommunicatorState::place() {
  const auto gather = [this](const transport::Record& mine) {
    std::vector<transport::Record> all(static_cast<std::size_t>(size()));
    run({.collective = Collective::allgather,
         .input = mine.data(),
         .output = all.data(),
         .count = mine.size(),
         .type = DType::u8,
         .name = "shared memory"});
    return all;
  };
  return {.rank = rank(), .ranks = size(), .gather = gather};
}

void CommunicatorState::share_memory() {
  std::vector<std::string> names;
  for (Rank r = 0; r < size(); ++r) names.push_back(transport_->describe(r));
  std::string reason;
  std::size_t first = runtime_->options.shared_cell;
  if (first == 0)
    first = static_cast<unsigned>(size()) <= runtime_->processors ? cell_of_a_core : cell_of_many;
  for (std::size_t cell = first; cell >= smallest_cell; cell /= 4) {
    try {
      node_ = std::make_shared<node::Group>(*sharer_, place(), cell, names);
      lookout_.tell_also(node_.get());
      return;
    } catch (const SystemError& error) {
      reason = error.what();
    }
  }
  if (rank() == 0)
    runtime_->log(base::Level::warning, "no shared memory between ranks, messages instead: {}", reason);
}

void CommunicatorState::lay_out(std::shared_ptr<transport::MemorySharer> sharer, std::int32_t node) {
  sharer_ = std::move(sharer);
  node_number_ = node;
  laid_out_ = true;
  if (size() == 1) return;
  const std::vector<std::int32_t> nodes = gather_numbers(node, "layout");
  const bool remote = std::ranges::any_of(nodes, [&](std::int32_t other) { return other != nodes.front(); });
  engine_.set_remote(remote);
  nodes_ = remote ? static_cast<Rank>(std::set<std::int32_t>(nodes.begin(), nodes.end()).size()) : 1;
  if (!remote) {
    if (sharer_) share_memory();
    bind_rules();
    return;
  }
  lay_out_nodes(nodes);
  bind_rules();
}

void CommunicatorState::lay_out_nodes(const std::vector<std::int32_t>& nodes) {
  if (!sharer_) return;
  NodeLayout layout = layout_of(nodes);
  if (layout.largest() == 1) return;
  const auto me = static_cast<std::size_t>(rank());
  const auto part = [&](int color) {
    const std::scoped_lock lock(runtime_->progress->token());
    return std::make_shared<CommunicatorState>(runtime_, transport_->split(color, rank()));
  };
  const auto node_part = part(layout.node_of[me]);
  const auto rail = part(layout.place_of[me]);
  rail->engine_.set_remote(true);
  node_part->lay_out(sharer_, node_number_);
  // All nodes go one way, or none.
  const bool shares = node_part->size() == 1 || node_part->node() != nullptr;
  const auto sharing = gather_numbers(shares ? 1 : 0, "sharing");
  if (std::ranges::find(sharing, 0) == sharing.end())
    hierarchy_ = std::make_unique<Hierarchy>(std::move(layout), lookout_, node_part, rail);
}

std::shared_ptr<std::byte> CommunicatorState::allocate(std::size_t bytes) {
  check_alive("allocate");
  base::require(bytes <= std::size_t{1} << 43U, "allocate: {} bytes do not fit in memory", bytes);
  if (hierarchy_) return allocate_over_nodes(bytes);
  if (!node_) {
    auto memory = std::make_shared<AlignedBytes>(bytes);
    std::fill_n(memory->data(), bytes, std::byte{0});
    return {memory, memory->data()};
  }
  require_same_bytes(bytes);
  // All are here, so whatever all have given back is unmapped by all before the new is counted.
  node_->arena().sweep();
  place().gather({});
  const std::size_t part = (bytes + node::Arena::header_bytes + 4095) / 4096 * 4096;
  std::byte* const data = node_->arena().add(sharer_->share(place(), part));
  return {data, [group = node_](std::byte* buffer) { group->arena().give_back(buffer); }};
}

void CommunicatorState::require_same_bytes(std::uint64_t bytes) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
  run({.collective = Collective::allgather,
       .input = &bytes,
       .output = all.data(),
       .count = 1,
       .type = DType::u64,
       .name = "allocate"});
  for (Rank r = 0; r < size(); ++r) {
    if (const std::uint64_t theirs = all[static_cast<std::size_t>(r)]; theirs != all[0]) {
      base::fail<MismatchError>("allocate: {} bytes on {}, {} on {}; allocate the same on every rank", all[0],
                                transport_->describe(0), theirs, transport_->describe(r));
    }
  }
}

/// Each node on its own, and then all or none.
std::shared_ptr<std::byte> CommunicatorState::allocate_over_nodes(std::size_t bytes) {
  // Parts of what is on its way would come between the node's exchanges, on each rank elsewhere.
  for (const auto& [sequence, pending] : unfinished_) {
    while (!Progress::test(*pending)) std::this_thread::yield();
  }
  require_same_bytes(bytes);
  std::shared_ptr<std::byte> memory;
  std::string problem;
  try {
    memory = hierarchy_->node().allocate(bytes);
  } catch (const SystemError& error) {
    problem = error.what();
  }
  const std::vector<std::int32_t> worked = gather_numbers(problem.empty() ? 1 : 0, "allocated");
  const auto failed = std::ranges::find(worked, 0);
  if (failed == worked.end()) return memory;
  const auto whose = static_cast<Rank>(failed - worked.begin());
  if (!problem.empty()) throw SystemError(problem);
  base::fail<SystemError>("allocate: {} bytes could not be had on the node of {}; it says why", bytes,
                          transport_->describe(whose));
}

}  // namespace tutti::engine
