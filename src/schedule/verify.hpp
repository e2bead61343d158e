#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace tutti::schedule {

/// What to prove.
struct Sweep {
  Rank first = 1;
  Rank last = 128;
  std::optional<Collective> collective;  ///< empty: all
  std::string algorithm;                 ///< empty: all
  unsigned threads = 1;
  /// Called now and then with the proofs done and all there are; from one thread at a time.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

/// What was proved of one algorithm: every rank count of the sweep, every radix, and, for rooted collectives,
/// the roots 0, 1 and p-1.
struct Proof {
  const Algorithm* algorithm = nullptr;
  std::uint64_t shapes = 0;
  std::uint64_t correct = 0;
  std::uint64_t agrees = 0;
  std::uint64_t canonical = 0;
  Rank canonical_up_to = 0;  ///< every rank count up to this one is canonical
  std::uint64_t steps = 0;
  double seconds = 0;  ///< of processor time
  std::string first_defect;
};

/// Throws InvalidArgument if no algorithm matches or the range is empty.
std::vector<Proof> verify(const Sweep& sweep);

/// The proofs as a table for people.
std::string table_of(const std::vector<Proof>& proofs, const Sweep& sweep);

}  // namespace tutti::schedule
