#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.hpp"
#include "tutti/communicator.hpp"

/// One suite for every engine and transport: a case is a call with everything that may vary, its data follow
/// from its seed, and what must come out is computed by a scalar reference that shares no code with the
/// kernels.
namespace tutti::conformance {

struct Case {
  schedule::Collective collective = schedule::Collective::allreduce;
  std::string algorithm;  ///< empty: chosen
  DType type = DType::f32;
  Op op = Op::sum;
  std::size_t count = 0;
  std::size_t misalignment = 0;  ///< bytes that both buffers start behind a cache line
  Rank root = 0;
  double prescale = 1.0;
  bool in_place = true;
  bool async = false;
  bool exact = true;   ///< data whose sums are exact in any order; otherwise the bits depend on the order
  bool arena = false;  ///< the buffers are in the arena
  bool mixed = false;  ///< in place or not, in the arena or not, asynchronous or not, and the misalignment
                       ///< differ between ranks
  bool any_order = false;
  bool uneven = false;  ///< allgather with counts of its own for every rank
  std::uint64_t seed = 1;
};

std::string describe(const Case& test);

/// Runs a case on every rank of the communicator. Returns what was wrong on this rank; empty if nothing.
std::string run_case(Communicator& world, const Case& test);

/// Cases that cover collectives × algorithms × types × ops × sizes around every border, for this rank count.
std::vector<Case> systematic_cases(Rank ranks);
/// A random case; the same for the same seed.
Case random_case(std::uint64_t seed, Rank ranks);
/// The same for calls that do not name an algorithm, with buffers in the arena or not, also both.
Case random_node_case(std::uint64_t seed, Rank ranks);

/// The same for calls that the MPI library itself can carry out.
Case random_library_case(std::uint64_t seed, Rank ranks);

/// Whether results of this algorithm have canonical bits at this rank count, as the checker proves.
bool canonical(const Case& test, Rank ranks);

}  // namespace tutti::conformance
