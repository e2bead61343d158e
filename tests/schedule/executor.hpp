#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace tutti::schedule {

/// What came of carrying a schedule out with numbers.
struct Outcome {
  std::string failure;         ///< it never ended, or a message did not fit; empty if it ran through
  bool values_right = false;   ///< every block that must be somewhere holds each contribution exactly once
  bool ranks_agree = false;    ///< with the same bits of the inexact sums
  std::vector<float> inexact;  ///< bits of every block that must be held, rank by rank
};

/// Carries a schedule out on one thread under rendezvous (a send ends together with its receive). Shares no
/// code with the checker: real numbers in real arrays. Contributions are powers of 32, whose sums show how
/// often each is in them, and beside them floats whose sums depend on the order.
Outcome execute(const Schedule& schedule);

}  // namespace tutti::schedule
