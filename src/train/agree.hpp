#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/error.hpp"
#include "tutti/communicator.hpp"

namespace tutti::train {

/// Collective. `complaint` is empty where all is well. If any rank has one, throws base::AgreedError with
/// that of the first such rank, on every rank: nobody is left waiting for a rank that has given up.
void agree(Communicator& world, const std::string& complaint);

/// Collective. Runs something that can fail on one rank only (a file, bad data), and agrees on the outcome.
template <class Body>
void agreed(Communicator& world, const Body& body) {
  std::string complaint;
  try {
    body();
  } catch (const std::bad_alloc&) {
    complaint = "out of memory; a smaller model, batch or data set, or fewer ranks on a node, need less";
  } catch (const std::exception& error) {
    complaint = error.what();
    if (complaint.empty()) complaint = "unknown error";
  }
  agree(world, complaint);
}

/// Collective. The bytes of rank 0 on every rank.
std::string broadcast_text(Communicator& world, std::string text, Rank root = 0);

}  // namespace tutti::train
