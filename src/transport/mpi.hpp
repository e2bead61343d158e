#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "transport/transport.hpp"

/// Everything that calls MPI, behind plain C++: no header of tutti shows mpi.h.
namespace tutti::transport {

enum class ThreadLevel : std::uint8_t { single, funneled, serialized, multiple };
std::string_view name_of(ThreadLevel level) noexcept;

/// What a message between two nodes takes.
struct WireTimes {
  Seconds latency{0};
  double seconds_per_byte = 0;
};

/// MPI in this process. Initializes it (MPI_THREAD_SERIALIZED) if nobody has, and finalizes it only then.
class MpiEnvironment {
 public:
  /// Throws InvalidArgument if MPI was finalized already, if there is another such object, if the launcher
  /// started another number of processes than MPI says, or if this is not the thread that may call MPI.
  MpiEnvironment(int* argc, char*** argv);
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;
  ~MpiEnvironment();

  bool initialized_here() const { return initialized_here_; }

  ThreadLevel thread_level() const { return level_; }

  /// First line of MPI_Get_library_version.
  const std::string& library() const { return library_; }

  Rank rank() const { return rank_; }

  Rank size() const { return size_; }

  /// This rank's node: the lowest rank on it.
  Rank node() const { return node_; }

  /// Ranks of the job on this rank's node (MPI_COMM_TYPE_SHARED).
  Rank ranks_here() const { return ranks_here_; }

  /// Processors that those ranks may run on, together.
  unsigned processors_here() const { return processors_here_; }

  /// Collective. False if not all ranks have come here within `patience`.
  bool all_arrive(Seconds patience) const;

  /// The destructor shall not finalize MPI.
  void leave_open() { initialized_here_ = false; }

  /// Collective. If any rank has a complaint, throws InvalidArgument on every rank with that of the first
  /// such rank.
  void agree(const std::string& complaint) const;
  /// Collective. Throws InvalidArgument on every rank if `value` is not the same everywhere.
  void require_same(const std::string& what, const std::string& value) const;

  /// Collective. True if `mine` is true on every rank.
  bool all(bool mine) const;
  /// Collective: the text of rank 0.
  std::string broadcast(const std::string& mine) const;

  /// Collective. What messages between rank 0 and the first rank of another node take, both ways at once; the
  /// same on every rank. Takes about 10 ms where the wire is fast, 0.1 s at 100 Mbit/s. Nothing where all
  /// ranks are on one node.
  std::optional<WireTimes> probe_wire() const;

  /// Lets MPI send what it still has to.
  static void poke();

  /// Collective: a transport over a duplicate of MPI_COMM_WORLD.
  std::unique_ptr<Transport> world() const;
  [[noreturn]] static void abort(int status);

 private:
  void claim();

  std::string name_before_;  ///< of MPI_COMM_SELF
  bool initialized_here_ = false;
  ThreadLevel level_ = ThreadLevel::single;
  std::string library_;
  Rank rank_ = 0;
  Rank size_ = 1;
  Rank ranks_here_ = 1;
  Rank node_ = 0;
  unsigned processors_here_ = 1;
};

}  // namespace tutti::transport
