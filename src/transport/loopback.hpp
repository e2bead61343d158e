#pragma once

#include <memory>
#include <vector>

#include "transport/transport.hpp"

namespace tutti::transport {

/// When a loopback send is done: at once (the bytes are copied aside), or only when its receive is tested.
/// Real networks do the first below some size and the second above it; a correct schedule survives both.
enum class Protocol : std::uint8_t { eager, rendezvous };

/// The meeting place of the in-process ranks; all of them share one.
class LoopbackHub;

/// Endpoints for `ranks` ranks of this process, as threads or driven in turn by one thread.
struct Loopback {
  std::shared_ptr<LoopbackHub> hub;
  std::vector<std::unique_ptr<Transport>> endpoints;
};

Loopback make_loopback(Rank ranks, Protocol protocol);

/// Rank `rank` of the hub is gone: what it has sent can still be received, but who waits for it, or sends to
/// it, gets PeerLostError with this reason, here and in all splits of the hub.
void abort_loopback(LoopbackHub& hub, Rank rank, const std::string& reason);

}  // namespace tutti::transport
