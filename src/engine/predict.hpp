#pragma once

#include "engine/node/operation.hpp"
#include "engine/request.hpp"
#include "schedule/cost.hpp"

namespace tutti::engine {

/// Until it is measured: an exchange of flags, copying a byte of own memory, adding a byte from a peer.
inline constexpr schedule::Link default_memory{
    .latency_s = 4e-7, .seconds_per_byte = 1e-10, .reduce_seconds_per_byte = 1e-10};

/// Predicted seconds of a collective in shared memory, of private buffers: staged, added slice by slice, and
/// copied out again; `in_arena`: read and written in place. More ranks than processors take turns. The
/// alpha-beta-gamma model with `memory` as its constants.
double node_seconds(const Request& request, Rank ranks, unsigned processors, bool in_arena,
                    const node::Limits& limits, const schedule::Link& memory);

}  // namespace tutti::engine
