#pragma once

#include <memory>
#include <string>

#include "tutti/communicator.hpp"
#include "tutti/export.hpp"

namespace tutti {

/// What a session found when it started.
struct SessionInfo {
  std::string mpi_library;       ///< first line of MPI_Get_library_version
  std::string thread_level;      ///< provided: "single", "funneled", "serialized", "multiple"
  bool initialized_mpi = false;  ///< by this session (which then also finalizes it)
  bool background_progress =
      false;  ///< asynchronous work advances on a thread; otherwise inside tutti's calls only
  std::string progress_reason;  ///< why, or why not
};

/// What a program says that the environment may say, too; the program wins.
struct SessionOptions {
  /// As TUTTI_LINK: RATE[,DELAY][,jitter=TIME][,burst=BYTES][,seed=NUMBER], such as "100mbit,1ms". Every rank
  /// is then a host of its own behind such a link, to try out what slower networks do. Empty: the links as
  /// they are.
  std::string link = {};
  /// Chooses by a profile that `tutti tune` has written, as TUTTI_PROFILE says. False: by the cost model
  /// alone.
  bool use_profile = true;
};

/// tutti in this process. Takes MPI as it finds it. If nobody has initialized it, does so with
/// MPI_THREAD_SERIALIZED (and finalizes it in the destructor): then all calls to MPI are tutti's; a program
/// that calls MPI itself initializes it first, best with MPI_THREAD_MULTIPLE. One session at a time per
/// process.
///
/// Reads the TUTTI_* variables once, here. Throws InvalidArgument, on every rank, if one is wrong on any rank
/// or if the launcher started another number of processes than MPI knows of.
class TUTTI_API Session {
 public:
  Session(int* argc, char*** argv, const SessionOptions& options = {});

  explicit Session(const SessionOptions& options = {}) : Session(nullptr, nullptr, options) {}

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// All ranks of the job (a duplicate of MPI_COMM_WORLD: tutti's messages never meet yours).
  Communicator& world();
  const SessionInfo& info() const;

  /// Ends the whole job at once with this exit status: for errors that other ranks cannot know of.
  [[noreturn]] void abort(int status);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
