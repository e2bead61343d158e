#pragma once

#include <string>

namespace tutti::cuda {

/// What a query of the CUDA runtime found. A machine without driver or device is a normal case, not an error.
struct Query {
  bool built = false;  ///< this program has the CUDA runtime linked in
  int devices = 0;
  int runtime_version = 0;  ///< 13000 is 13.0
  int error = 0;            ///< of the query; 0: none
  std::string reason;       ///< why there is no device; empty if there is one
};

/// What an answer of the runtime means that there is no CUDA here (34, 35, 46, 100, 101, 802, 803, 999, or
/// any other error), in words.
std::string reason_of(int error);

/// Asks the runtime once. Never throws.
Query query();

/// One line for people: "no device: no driver (CUDA runtime 13.0)".
std::string describe_cuda();
/// "2.28.9 (libnccl.so.2)" or "not found: …". Loads the library at run time; nothing is linked.
std::string describe_nccl();

}  // namespace tutti::cuda
