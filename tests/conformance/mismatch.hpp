#pragma once

#include <cstddef>
#include <string>

#include "tutti/communicator.hpp"

namespace tutti::conformance {

/// How many ways there are here in which ranks can call different operations.
std::size_t mismatches();
/// Bytes of the longer buffer in this one.
std::size_t mismatch_bytes(std::size_t number);

/// Collective. Rank `odd` calls something else than all others, and then all call barrier(). Returns what is
/// wrong, empty if nothing: every rank must get a MismatchError that names both operations, from the call or
/// from the barrier, and no byte outside the buffers may change. The communicator is of no use afterwards.
std::string run_mismatch(Communicator& communicator, std::size_t number, Rank odd);

}  // namespace tutti::conformance
