#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/link.hpp"
#include "transport/transport.hpp"

namespace tutti::transport {

/// What a message of so many bytes is on the wire: in TCP segments of 1448 bytes, each with 66 bytes of
/// headers (Ethernet 14, IPv4 20, TCP 32 with timestamps), as tc and an interface's counters see them.
constexpr std::size_t frame_bytes(std::size_t bytes) noexcept {
  const std::size_t frames = bytes == 0 ? 1 : (bytes + 1447) / 1448;
  return bytes + 66 * frames;
}

/// A decorator: whatever this rank sends to others leaves it through one link of this rate, first in, first
/// out, and is there `delay` later: what tc's tbf and netem do to a host's interface, without root and
/// without hosts. A message is handed to the transport below when its last byte would arrive, and its ticket
/// is done only then; so the sender must call test() now and then, as all do who wait. Notices are not slowed
/// down. Collectives of the library below, which would go round the link, are not offered (native() is null).
std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> below, const base::LinkShape& shape,
                                       std::shared_ptr<const base::Clock> clock);

}  // namespace tutti::transport
