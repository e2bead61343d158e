#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/options.hpp"
#include "base/wait.hpp"
#include "engine/choice.hpp"
#include "engine/hierarchy.hpp"
#include "engine/library_engine.hpp"
#include "engine/node/group.hpp"
#include "engine/node/operation.hpp"
#include "engine/profile.hpp"
#include "engine/progress.hpp"
#include "engine/schedule_engine.hpp"
#include "engine/signature.hpp"
#include "transport/transport.hpp"
#include "tutti/communicator.hpp"

namespace tutti::engine {

/// What every communicator of a session shares.
struct Runtime {
  base::CoreOptions options;
  std::shared_ptr<Progress> progress;
  /// The only thread that may call, where MPI was initialized so; the default: any.
  std::thread::id only_thread = {};
  base::Log log{base::Level::warning, "tutti"};
  std::shared_ptr<const Profile> profile = {};  ///< null: none
  /// Of messages between nodes, as measured when the session started; where a profile says it, that counts.
  std::optional<schedule::Link> remote_link = {};
  /// MPI takes calls from several threads at a time.
  bool many_threads = false;
  unsigned processors = base::usable_processors();  ///< that the ranks of this node may use together
};

/// How long work may still take while an exception passes through its owner.
inline constexpr Seconds patience_while_unwinding{2};

/// Behind a Communicator: checks calls, numbers operations, gives them to an engine and to progress.
class CommunicatorState {
 public:
  CommunicatorState(std::shared_ptr<const Runtime> runtime, std::unique_ptr<transport::Transport> transport);
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;
  /// Waits for what is on its way; while an exception passes, not for long.
  ~CommunicatorState();

  Rank rank() const { return transport_->rank(); }

  Rank size() const { return transport_->size(); }

  transport::Transport& transport() { return *transport_; }

  ScheduleEngine& engine() { return engine_; }

  const Runtime& runtime() const { return *runtime_; }

  /// What the next operation would be called on in a request: defaults of the session filled in.
  Request prepare(Request request, const CallOptions& options);

  void run(const Request& request);
  std::shared_ptr<Pending> start(const Request& request);

  /// The same for an operation that is not of this layer: made by `make` from (lookout, sequence, label).
  /// `request` is what ranks compare.
  using Maker =
      std::function<std::unique_ptr<Operation>(Lookout& lookout, std::uint32_t sequence, std::string label)>;
  std::shared_ptr<Pending> start(const Request& request, const Maker& make);
  std::shared_ptr<CommunicatorState> split(int color, int key);

  /// Collective, before any other call: this rank is on node `node`. Ranks of a node share memory from now
  /// on, unless `sharer` is null; where that cannot be had it is said, and messages do.
  void lay_out(std::shared_ptr<transport::MemorySharer> sharer, std::int32_t node);

  /// How a call is carried out, and the rule of the profile that says so, if one does. Throws InvalidArgument
  /// if it names a way that it cannot go.
  struct Route {
    Choice choice;
    const Rule* rule = nullptr;
  };

  Route route(const Request& request);
  /// Without the profile.
  Choice untuned(const Request& request);
  /// Predicted seconds of that way; infinite for the MPI library's own call, which nobody can look into.
  double predict(const Request& request, const Choice& choice);
  /// Why a call cannot go that way; empty: it can.
  std::string refusal(const Request& request, const Choice& choice);
  /// The result has the bits that the request asks for.
  bool keeps_order(const Request& request, const Choice& choice);

  /// What this rank has sent as messages, as a part of this communicator or of those that its operations use.
  transport::Traffic traffic() const;

  /// Nodes that the ranks are on; 0: not known.
  Rank nodes() const { return nodes_; }

  /// Collective: the node of every rank, by number.
  std::vector<std::int32_t> nodes_of_ranks() { return gather_numbers(node_number_, "nodes"); }

  /// Null: none.
  const Hierarchy* hierarchy() const { return hierarchy_.get(); }

  /// Where ranks are on several nodes: those of this rank's rail. Null where there is no hierarchy.
  CommunicatorState* rail() const;

  /// Numbers a call and makes its operation, for an operation that this one is a part of.
  std::unique_ptr<Operation> make(const Request& request);
  /// Collective. Memory of this rank, in the arena where there is one.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);

  /// Where `peer` has what this rank has at `data`, in the arena; null: nowhere.
  std::byte* peer_memory(const std::byte* data, std::size_t bytes, Rank peer) const;

  /// "shared memory", "rails between 2 nodes of 4 ranks, shared memory inside", "messages": how ranks meet.
  std::string paths() const;

  /// Ranks that share memory; null: none do.
  node::Group* node() const { return node_.get(); }

 private:
  void check(const Request& request) const;
  std::string problem(const Request& request) const;
  bool plain(const Request& request) const;
  void check_alive(std::string_view call);
  transport::NodePlace place();
  std::vector<std::int32_t> gather_numbers(std::int32_t mine, std::string_view name);
  std::unique_ptr<Operation> operation_for(const Request& request, std::uint32_t sequence,
                                           const transport::Signature& signature,
                                           std::optional<Library::Turnout>* blocking = nullptr);
  std::unique_ptr<Operation> library_operation(const Request& request, std::uint32_t sequence,
                                               const transport::Signature& signature,
                                               std::optional<Library::Turnout>* blocking);
  void run_anyhow(const Request& request, std::uint32_t sequence, const transport::Signature& signature);
  void bind_rules();
  std::string label(std::uint32_t sequence, const transport::Signature& signature) const;
  void share_memory();
  void require_same_bytes(std::uint64_t bytes);
  std::shared_ptr<std::byte> allocate_over_nodes(std::size_t bytes);
  void lay_out_nodes(const std::vector<std::int32_t>& nodes);
  template <class Run>
  void guarded(std::uint32_t sequence, const Run& run);
  void forget_finished();
  /// The number of the next operation; waits until so few are unfinished that tags cannot repeat.
  std::uint32_t number(const Request& request, transport::Signature& signature);
  void poison(std::uint32_t sequence, const char* reason);

  std::shared_ptr<const Runtime> runtime_;
  std::unique_ptr<transport::Transport> transport_;
  CallLog calls_;
  Lookout lookout_;
  ScheduleEngine engine_;
  std::shared_ptr<transport::MemorySharer> sharer_;
  std::shared_ptr<node::Group> node_;
  node::Limits limits_;
  std::int32_t node_number_ = 0;
  std::unique_ptr<Hierarchy> hierarchy_;  ///< null: one node, or nodes that do not fit
  std::unique_ptr<Library> library_;      ///< null: there is no library below
  Rank nodes_ = 0;
  bool laid_out_ = false;
  std::vector<Rule> rules_;  ///< of the profile, those for these ranks
  std::vector<std::pair<std::uint32_t, std::shared_ptr<Pending>>> unfinished_;
  std::string failure_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace tutti::engine
