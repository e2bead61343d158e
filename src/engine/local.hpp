#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/options.hpp"
#include "engine/profile.hpp"
#include "transport/faulty.hpp"
#include "transport/loopback.hpp"
#include "tutti/communicator.hpp"

namespace tutti::engine {

/// How the ranks of a local group run.
struct LocalOptions {
  base::CoreOptions core = {};
  transport::Protocol protocol = transport::Protocol::eager;
  bool shared_memory = false;                ///< ranks see each other's memory as processes of one node do
  std::vector<std::int32_t> nodes = {};      ///< with shared memory: the node of each rank; empty: one node
  bool background_thread = false;            ///< asynchronous work advances on a thread of each rank
  std::optional<base::LinkShape> link = {};  ///< of every rank
  transport::FaultPlan faults = {};          ///< on every rank
  std::shared_ptr<const Profile> profile = {};
};

/// Runs `body` on `ranks` ranks, each a thread of this process with a communicator over loopback: the
/// workhorse of tests. Returns when all have ended. If a rank throws, the others get PeerLostError from then
/// on, and an Error with every rank's message is thrown here.
void run_local(Rank ranks, const LocalOptions& options, const std::function<void(Communicator&)>& body);

/// The exceptions of the ranks instead (null: none), for tests of failures.
std::vector<std::exception_ptr> run_local_catching(Rank ranks, const LocalOptions& options,
                                                   const std::function<void(Communicator&)>& body);

}  // namespace tutti::engine
