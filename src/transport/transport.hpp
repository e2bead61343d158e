#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tutti/types.hpp"

namespace tutti::transport {

/// Which message it is. Messages of one ordered pair with equal tags match in the order in which they were
/// posted; messages with different tags are independent. A transport may pack `sequence` and `segment` modulo
/// the windows below: whoever posts keeps fewer than that many of them unfinished at a time.
struct Tag {
  std::uint32_t sequence = 0;  ///< number of the operation in its communicator
  std::uint32_t segment = 0;
  std::uint8_t strand = 0;  ///< below strand_limit
  friend bool operator==(const Tag&, const Tag&) = default;
};

inline constexpr std::uint32_t sequence_window = 64;
inline constexpr std::uint32_t segment_window = 64;
inline constexpr std::uint32_t strand_limit = 4;

/// Names a posted message until test() has returned true for it or it was cancelled.
using Ticket = std::uint32_t;

/// Moves bytes between this rank and another. Nothing here blocks but split(). Not thread-safe: the holder of
/// the progress token calls it.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;
  virtual Rank rank() const = 0;
  virtual Rank size() const = 0;

  /// Starts to send; `data` must stay as it is until the ticket is done. bytes > 0.
  virtual Ticket send(Rank peer, Tag tag, const void* data, std::size_t bytes) = 0;
  /// Starts to receive exactly `bytes`; another size is MismatchError, from test().
  virtual Ticket receive(Rank peer, Tag tag, void* data, std::size_t bytes) = 0;
  /// True once the message is through; the ticket is then no more. Throws PeerLostError, MismatchError.
  virtual bool test(Ticket ticket) = 0;
  /// Gives a message up after a failure: its buffer is no longer touched where the library below can promise
  /// that.
  virtual void cancel(Ticket ticket) noexcept = 0;

  /// Collective over all ranks, blocking: the transport of those with the same color, numbered by (key,
  /// rank).
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;

  /// "rank 3 (host, pid 4711)": for error reports.
  virtual std::string describe(Rank peer) const = 0;
};

}  // namespace tutti::transport
