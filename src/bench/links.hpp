#pragma once

#include "base/clock.hpp"
#include "engine/profile.hpp"
#include "tutti/communicator.hpp"

namespace tutti::bench {

/// Collective. Measures what the cost model counts with, and enters it: messages between rank 0 and another
/// rank of its node, and one of another node (ping-pong: the latency of 8 bytes, the rate of 4 MiB); adding;
/// shared memory (a barrier, a copy). All ranks get the same.
void measure_links(Communicator& world, const base::Clock& clock, engine::Profile& profile);

}  // namespace tutti::bench
