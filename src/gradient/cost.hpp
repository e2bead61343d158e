#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compress/codec.hpp"
#include "exchange/coded.hpp"

namespace tutti::gradient {

/// A way for gradients to travel, and what it takes on this machine. Without a codec: as they are.
struct Candidate {
  std::string text;  ///< as make_codec() takes it; "dense" without one
  std::unique_ptr<compress::Codec> codec = {};
  double encode = 0;  ///< seconds an element
  double decode = 0;  ///< seconds an element, adding
  double bytes = 4;   ///< of an element's encoding
};

/// What the network takes between these ranks: seconds of an empty call, and seconds a byte.
struct Wire {
  double dense_latency = 0;
  double dense_per_byte = 0;    ///< of the buffer, in an allreduce of fp32
  double message_latency = 0;   ///< of one round of messages from all to all
  double message_per_byte = 0;  ///< of what a rank sends in it
};

/// Seconds that the allreduce of a bucket takes with nothing beside it. Counts work of the processor and of
/// the wire one after the other, though parts of a long bucket overlap: it tells what is worth trying, and
/// steps tell what is fastest.
double predict(const Wire& wire, const Candidate& candidate, Rank ranks,
               std::span<const exchange::Run> bucket);

/// Candidates of the error class and milder ones, dense first.
std::vector<Candidate> candidates_of(compress::ErrorClass most);

/// Collective: measures candidates and wire, the slowest rank's figures for all. Takes tenths of a second,
/// more where one megabyte takes longer than that.
Wire measure(Communicator& communicator, std::span<Candidate> candidates);

}  // namespace tutti::gradient
