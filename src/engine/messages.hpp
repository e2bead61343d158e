#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/lookout.hpp"
#include "transport/transport.hpp"

namespace tutti::engine {

/// Messages of one operation between this rank and others, all at once: for operations that are no schedules.
/// Long ones are cut, so that none has to ask the receiver first. At most one message to, and one from, each
/// peer for each strand.
class PeerMessages {
 public:
  /// `lookout` must outlive it. `strand`: below transport::strand_limit, another for each round of messages.
  PeerMessages(Lookout& lookout, std::uint32_t sequence, std::uint8_t strand, std::size_t longest);
  PeerMessages(const PeerMessages&) = delete;
  PeerMessages& operator=(const PeerMessages&) = delete;
  /// Takes back what is on its way; what MPI may still touch is `owner`'s, see keep().
  ~PeerMessages();

  /// The memory of the messages: held as long as the library below may touch it.
  void keep(std::shared_ptr<const void> memory) { memory_.push_back(std::move(memory)); }

  void send(Rank peer, std::span<const std::byte> bytes);
  void receive(Rank peer, std::span<std::byte> bytes);
  /// Looks at all. True if something has arrived or gone.
  bool advance();

  bool done() const { return open_.empty(); }

 private:
  Lookout& lookout_;
  transport::Transport& transport_;
  transport::Tag tag_;
  transport::Signature signature_;
  std::size_t longest_;
  std::vector<transport::Ticket> open_;
  std::vector<std::shared_ptr<const void>> memory_;
};

}  // namespace tutti::engine
