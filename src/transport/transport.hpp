#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/mpi_native.hpp"
#include "tutti/error.hpp"
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

/// Payload that a rank has sent so far: no envelopes, no notices.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// Names a posted message until test() has returned true for it or it was cancelled.
using Ticket = std::uint32_t;

/// What the operation is that a message belongs to, in words that only the engine can read: both ends must
/// have the same.
struct Signature {
  std::array<std::uint64_t, 6> words{};
  friend bool operator==(const Signature&, const Signature&) = default;
};

/// The peer is in another operation than this rank.
class ForeignOperation : public MismatchError {
 public:
  ForeignOperation(Rank whose, const Signature& theirs, const std::string& text)
      : MismatchError(text), peer(whose), found(theirs) {}

  Rank peer;
  Signature found;
};

/// A word between ranks beside the messages of operations: why an operation ended for all, told by the one
/// that found out, or an inquiry of one that has waited long: this is what I am in; are you too?
struct Notice {
  enum class Kind : std::uint8_t { mismatch, peer_lost, timeout, inquiry } kind = Kind::mismatch;
  Rank from = -1;
  std::uint32_t sequence = 0;
  Signature signature = {};
  std::string text = {};
};

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

  /// Starts to send; `data` must stay as it is until the ticket is done. `opening`: not null for the first
  /// message to this peer under a tag, and only for that; bytes may be 0 only then.
  virtual Ticket send(Rank peer, Tag tag, const Signature* opening, const void* data, std::size_t bytes) = 0;
  /// Starts to receive exactly `bytes`. If the first message under a tag belongs to another operation or has
  /// another size, test() throws ForeignOperation or MismatchError before anything is written to `data`.
  virtual Ticket receive(Rank peer, Tag tag, const Signature* opening, void* data, std::size_t bytes) = 0;
  /// True once the message is through; the ticket is then no more. Throws PeerLostError, MismatchError.
  virtual bool test(Ticket ticket) = 0;
  /// Gives a message up after a failure. False if the library below may still touch its buffer.
  virtual bool cancel(Ticket ticket) noexcept = 0;

  virtual Traffic traffic() const { return traffic_; }

  /// Holds memory that it may still touch until this transport goes.
  void park(std::shared_ptr<const void> memory) { parked_.push_back(std::move(memory)); }

  /// Tells all other ranks, as well as it can, without waiting for anybody.
  virtual void tell_all(const Notice& notice) noexcept = 0;
  /// The next notice that another rank has sent.
  virtual std::optional<Notice> heard() = 0;

  /// Collective over all ranks, blocking: the transport of those with the same color, numbered by (key,
  /// rank).
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;

  /// The collectives of the library below over the same ranks; null: it has none. Lives as long as this.
  virtual NativeCollectives* native() { return nullptr; }

  /// "rank 3 (host, pid 4711)": for error reports.
  virtual std::string describe(Rank peer) const = 0;

 protected:
  void note_sent(std::size_t bytes) {
    ++traffic_.messages;
    traffic_.bytes += bytes;
  }

  std::vector<std::shared_ptr<const void>> take_parked() { return std::move(parked_); }

 private:
  Traffic traffic_;
  std::vector<std::shared_ptr<const void>> parked_;
};

}  // namespace tutti::transport
