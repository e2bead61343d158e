#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/link.hpp"
#include "tutti/types.hpp"

namespace tutti::base {

/// The value of an environment variable, if it is set. The only place in tutti that reads the environment.
std::optional<std::string> environment(const char* name);

/// Names of the variables that are set and start with a prefix, sorted.
std::vector<std::string> environment_with_prefix(std::string_view prefix);

/// What the launcher says of this process before MPI is initialized.
struct LaunchHint {
  std::string launcher;  ///< "Open MPI", "MPICH or Intel MPI (PMI)", "Slurm"; empty if started without one
  std::optional<Rank> rank;  ///< in the whole job
  std::optional<Rank> size;
};

/// Reads the variables of Open MPI 4 and 5, of PMI (MPICH, Intel MPI) and of Slurm, in this order.
LaunchHint launch_hint();

/// Throws InvalidArgument if the launcher started another number of processes than MPI says there are: the
/// usual sign of an mpirun that belongs to another MPI library (each process would train alone as "rank 0 of
/// 1").
void require_same_size(const LaunchHint& hint, Rank mpi_size, std::string_view mpi_library);

/// How the core runs. Every field has a variable TUTTI_<NAME>; read once, at the start of a session,
/// immutable after.
struct CoreOptions {
  // what results may depend on
  bool any_order = false;  ///< TUTTI_ORDER=any|canonical: sums may be added in any order (ring, double tree)
  std::string algorithm;   ///< TUTTI_ALGORITHM: name of the allreduce algorithm; empty: chosen
  // speed only
  /// TUTTI_LINK: every rank is a host of its own behind a link of this shape; none: as it is. It changes
  /// results only as far as hosts do.
  std::optional<LinkShape> link = {};
  std::uint64_t segment_bytes =
      0;  ///< TUTTI_SEGMENT_BYTES: buffers are cut into segments of this size; 0: chosen
  std::uint64_t message_bytes =
      60 << 10;  ///< TUTTI_MESSAGE_BYTES: between nodes, segments are chosen so that messages are no longer
  std::uint32_t segments_in_flight = 0;  ///< TUTTI_SEGMENTS_IN_FLIGHT; 0: chosen
  Seconds timeout{0};                    ///< TUTTI_TIMEOUT, in seconds; 0: none
  bool shared_memory = true;             ///< TUTTI_SHARED_MEMORY=on|off: ranks of a node read each other
  std::uint64_t shared_limit = 0;  ///< TUTTI_SHARED_LIMIT: bytes that a node may take for it; 0: what is free
  std::uint64_t shared_cell = 0;   ///< TUTTI_SHARED_CELL: bytes of the pieces that go through it; 0: chosen
  /// TUTTI_PROFILE: file that `tutti tune` has written; off: none; empty: the one in the cache folder, if
  /// any.
  std::string profile;
  std::string cache_folder;           ///< $XDG_CACHE_HOME/tutti or $HOME/.cache/tutti; empty: there is none
  std::string log_level = "warning";  ///< TUTTI_LOG: error|warning|info|debug

  /// Reads the environment. Throws InvalidArgument that names the variable, its value and what is allowed.
  static CoreOptions from_environment();
};

/// "1gbit", "100mbit", "56kbit" (powers of 1000), also with "/s", to bytes a second. Throws InvalidArgument
/// naming `what`.
double parse_rate(std::string_view text, std::string_view what);

/// "64", "64k", "4M", "1GiB", "1g" (powers of 1024) to bytes. Throws InvalidArgument naming `what`.
std::uint64_t parse_bytes(std::string_view text, std::string_view what);

}  // namespace tutti::base
