#include "engine/messages.hpp"

#include <algorithm>
#include <memory>

namespace tutti::engine {

PeerMessages::PeerMessages(Lookout& lookout, std::uint32_t sequence, std::uint8_t strand, std::size_t longest)
    : lookout_(lookout),
      transport_(lookout.transport()),
      tag_{.sequence = sequence, .segment = 0, .strand = strand},
      signature_(lookout.calls().at(sequence)),
      longest_(std::max<std::size_t>(longest, 1)) {}

PeerMessages::~PeerMessages() {
  bool free = true;
  for (const transport::Ticket ticket : open_) {
    if (!transport_.cancel(ticket)) free = false;
  }
  if (free) return;
  for (auto& memory : memory_) transport_.park(std::move(memory));
}

void PeerMessages::send(Rank peer, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at == 0 || at < bytes.size(); at += longest_) {
    const auto part = bytes.subspan(at, std::min(longest_, bytes.size() - at));
    open_.push_back(transport_.send(peer, tag_, at == 0 ? &signature_ : nullptr, part.data(), part.size()));
  }
}

void PeerMessages::receive(Rank peer, std::span<std::byte> bytes) {
  for (std::size_t at = 0; at == 0 || at < bytes.size(); at += longest_) {
    const auto part = bytes.subspan(at, std::min(longest_, bytes.size() - at));
    open_.push_back(
        transport_.receive(peer, tag_, at == 0 ? &signature_ : nullptr, part.data(), part.size()));
  }
}

bool PeerMessages::advance() {
  // All of them, every time: a message that is only asked for starts to move when it is looked at. What
  // throws stays, to be cancelled.
  const std::size_t before = open_.size();
  for (std::size_t i = 0; i < open_.size();) {
    if (transport_.test(open_[i]))
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  return open_.size() < before;
}

}  // namespace tutti::engine
