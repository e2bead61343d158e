#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/choice.hpp"
#include "engine/request.hpp"
#include "schedule/cost.hpp"

namespace tutti::engine {

/// One line of a profile: for these calls, that choice.
struct Rule {
  schedule::Collective collective = schedule::Collective::allreduce;
  Rank ranks = 0;  ///< of the communicator; 0: any
  Rank nodes = 0;  ///< that they are on; 0: any
  std::optional<bool> any_order = {};
  std::vector<DType> types = {};         ///< empty: all
  std::vector<Op> ops = {};              ///< empty: all; nothing to allgather and broadcast
  std::uint64_t from = 0;                ///< bytes of the message, as tutti bench counts them
  std::uint64_t to = ~std::uint64_t{0};  ///< inclusive
  Choice use = {};
  double seconds = 0;  ///< measured at the geometric middle; 0: not

  bool serves(Rank in_ranks, Rank on_nodes) const {
    return (ranks == 0 || ranks == in_ranks) && (nodes == 0 || nodes == on_nodes);
  }

  bool matches(const Request& request, std::uint64_t bytes) const;
};

/// Bytes of the longer buffer of a call.
std::uint64_t message_bytes(const Request& request, Rank ranks);

/// What `tutti tune` found out about a machine, for later sessions to choose by. First match wins.
struct Profile {
  std::string machine;  ///< processor, number of cores, MPI library: see fingerprint()
  std::string path;     ///< where it came from
  std::uint64_t hash = 0;
  /// Messages between processes of a node, and between nodes; nothing: not measured.
  std::optional<schedule::Link> local = {};
  std::optional<schedule::Link> remote = {};
  std::optional<schedule::Link> memory = {};  ///< see default_memory
  std::vector<Rule> rules;
  std::vector<std::string> warnings;  ///< rules that were left out, and why

  /// Reads JSON. Unknown collectives, algorithms and keys of a rule: that rule is left out, with a warning,
  /// as it could mean something else. Throws InvalidArgument if it is no profile at all, or of another
  /// schema.
  static Profile parse(std::string_view json, const std::string& path);
  std::string to_json() const;
};

inline constexpr int profile_schema = 1;

/// What a profile is good for: "processor, n cores, MPI library".
std::string fingerprint(const std::string& mpi_library);

/// Where the profile of a machine lies unless TUTTI_PROFILE names another: in `folder`, under a name that
/// follows from its fingerprint.
std::string profile_path(const std::string& folder, const std::string& machine);

}  // namespace tutti::engine
