#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/request.hpp"
#include "engine/workspace.hpp"
#include "transport/mpi_native.hpp"

namespace tutti::engine {

/// One call as the MPI library takes it, and what is left to do when it has come back.
class LibraryCall {
 public:
  /// `mixed`: in place on some ranks only, which MPI does not allow.
  LibraryCall(const Request& request, Rank rank, Rank ranks, bool mixed);

  const transport::NativeCall& call() const { return call_; }

  /// Divides averages; makes NaNs the canonical one where bits count; copies what MPI could not do in place.
  void finish();

 private:
  Request request_;
  transport::NativeCall call_;
  AlignedBytes aside_;
  Rank rank_;
  std::uint64_t contributors_;
};

/// The MPI library's own collectives as an engine. An operation starts when all ranks have come to it, which
/// a short exchange through tutti finds out: whoever calls something else, is dead or late is found there,
/// as in any operation. What happens to a peer in the midst of MPI's call, MPI must report.
class Library {
 public:
  /// What the ranks tell each other when they come, each 0 or 1: of all, the largest.
  struct Turnout {
    std::uint8_t asynchronous = 0;
    std::uint8_t in_place = 0;
    std::uint8_t out_of_place = 0;

    bool mixed() const { return in_place != 0 && out_of_place != 0; }
  };

  /// An allreduce (max) of those bytes for the same operation.
  using Entry = std::function<std::unique_ptr<Operation>(const Turnout& in, Turnout& out)>;

  Library(transport::NativeCollectives& native, Rank rank, Rank ranks)
      : native_(native), rank_(rank), ranks_(ranks) {}

  /// Why it cannot carry out a call, with the same result in every allowed order; empty: it can.
  std::string refusal(const Request& request) const;

  /// The library must outlive the operation. `blocking`: not null for a blocking call. If all ranks block,
  /// then the operation ends when it is this call's turn, sets `*blocking`, and the caller carries it out by
  /// run() (MPI's blocking calls are often faster). Otherwise the operation carries it out itself.
  std::unique_ptr<Operation> start(const Request& request, const Entry& entry, std::string label,
                                   std::optional<Turnout>* blocking);
  /// Blocks until MPI is through. All ranks are there, so it needs nobody else's help.
  void run(const Request& request, const Turnout& turnout);

 private:
  friend class LibraryOperation;

  transport::NativeCollectives& native_;
  Rank rank_;
  Rank ranks_;
  /// MPI wants its calls in one order on all ranks.
  std::uint64_t next_ = 0;
  std::uint64_t current_ = 0;
  std::string failure_;
};

}  // namespace tutti::engine
