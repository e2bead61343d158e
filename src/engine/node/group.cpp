#include "engine/node/group.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <utility>

namespace tutti::engine::node {
namespace {

constexpr std::size_t page = 4096;

constexpr std::size_t to_pages(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}

}  // namespace

Group::Group(transport::MemorySharer& sharer, const transport::NodePlace& place, std::size_t cell_bytes,
             std::vector<std::string> names)
    : staged(static_cast<std::size_t>(place.ranks)),
      reduced(staged),
      consumed(staged),
      done(staged),
      rank_(place.rank),
      ranks_(place.ranks),
      cell_bytes_(to_pages(cell_bytes)),
      memory_(sharer.share(place, to_pages(sizeof(Control)) + cells_per_rank * cell_bytes_)),
      scratch_(static_cast<std::size_t>(place.ranks)),
      arena_(place.rank, place.ranks),
      names_(std::move(names)),
      watch_(place) {
  const std::size_t part = memory_->bytes() / static_cast<std::size_t>(ranks_);
  for (std::size_t r = 0; r < scratch_.size(); ++r)
    controls_.push_back(reinterpret_cast<Control*>(memory_->data() + part * r));
  for (std::size_t cell = 0; cell < cells_per_rank; ++cell) {
    for (std::size_t r = 0; r < scratch_.size(); ++r)
      cells_.push_back(memory_->data() + part * r + to_pages(sizeof(Control)) + cell * cell_bytes_);
  }
  for (std::size_t slot = 0; slot < 2; ++slot) {
    for (Control* control : controls_) slots_.push_back(control->slots[slot].payload.data());
  }
}

void Group::wake() {
  Plight& plight = own().plight;
  // Without a fence a sleeper can be missed; it sleeps for a millisecond at most, and fences cost every time.
  if (plight.sleepers.load(std::memory_order_relaxed) == 0) return;
  plight.wakes.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&plight.wakes), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

void Group::wait_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Seconds most) {
  const timespec limit{
      static_cast<time_t>(most.count()),
      static_cast<long>((most.count() - static_cast<double>(static_cast<time_t>(most.count()))) * 1e9)};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

std::string Group::table() {
  std::string lines;
  for (Rank r = 0; r < ranks_; ++r) {
    const Plight& plight = of(r).plight;
    const std::uint64_t called = plight.called.load(std::memory_order_acquire);
    if (called == 0) {
      lines += fmt::format("\n  {}: has called nothing yet", name(r));
      continue;
    }
    const bool ended =
        plight.left.load(std::memory_order_acquire) >= plight.entered.load(std::memory_order_acquire);
    const auto call = call_of(r, static_cast<std::uint32_t>(called - 1));
    lines += fmt::format("\n  {}: {} operation #{}{}", name(r), ended ? "has ended" : "is in", called - 1,
                         call ? fmt::format(", {}", describe(*call)) : "");
  }
  return lines;
}

void Group::note_call(std::uint32_t sequence, const transport::Signature& signature) {
  Plight& plight = own().plight;
  Call& call = plight.calls[sequence % plight.calls.size()];
  call.operation.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < signature.words.size(); ++i)
    call.signature[i].store(signature.words[i], std::memory_order_relaxed);
  call.operation.store(std::uint64_t{sequence} + 1, std::memory_order_release);
  plight.called.store(std::uint64_t{sequence} + 1, std::memory_order_release);
}

std::optional<transport::Signature> Group::call_of(Rank rank, std::uint32_t sequence) const {
  const Plight& plight = of(rank).plight;
  const Call& call = plight.calls[sequence % plight.calls.size()];
  const std::uint64_t wanted = std::uint64_t{sequence} + 1;
  if (call.operation.load(std::memory_order_acquire) != wanted) return std::nullopt;
  transport::Signature signature;
  for (std::size_t i = 0; i < signature.words.size(); ++i)
    signature.words[i] = call.signature[i].load(std::memory_order_relaxed);
  // The rank may have gone on and written over it meanwhile.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (call.operation.load(std::memory_order_relaxed) != wanted) return std::nullopt;
  return signature;
}

void Group::say_failed(transport::Notice::Kind kind, const std::string& text) noexcept {
  Plight& plight = own().plight;
  if (plight.failure.load(std::memory_order_relaxed) != 0) return;
  text.copy(plight.text.data(), plight.text.size() - 1);
  plight.failure.store(1 + static_cast<std::uint32_t>(kind), std::memory_order_release);
  wake();
}

std::optional<transport::Notice> Group::trouble(std::uint32_t sequence,
                                                const transport::Signature& signature) const {
  using Kind = transport::Notice::Kind;
  for (Rank r = 0; r < ranks_; ++r) {
    const Plight& plight = of(r).plight;
    if (const std::uint32_t failure = plight.failure.load(std::memory_order_acquire); failure != 0) {
      return transport::Notice{
          .kind = static_cast<Kind>(failure - 1),
          .from = r,
          .text =
              fmt::format("{}: {}", r == rank_ ? "an operation before it has failed" : name(r) + " reports",
                          plight.text.data())};
    }
    if (const auto call = call_of(r, sequence); call && *call != signature) {
      return transport::Notice{
          .kind = Kind::mismatch,
          .from = r,
          .text = fmt::format("{} called {}; {}", name(r), difference(signature, *call), same_everywhere)};
    }
  }
  return std::nullopt;
}

std::optional<std::string> Group::missing(std::uint64_t mark) const {
  const auto ended_before = [&](Rank r) { return of(r).plight.left.load(std::memory_order_acquire) < mark; };
  for (Rank r = 0; r < ranks_; ++r) {
    if (of(r).plight.closed.load(std::memory_order_acquire) != 0 && ended_before(r))
      return fmt::format("{} has let its communicator go and will not come", name(r));
  }
  // It may have ended well, with all that this rank needs.
  if (const auto rank = watch_.gone(); rank && ended_before(*rank))
    return fmt::format("the process of {} has ended", name(*rank));
  return std::nullopt;
}

void Group::close() {
  own().plight.closed.store(1, std::memory_order_release);
  wake();
}

void throw_as(transport::Notice::Kind kind, const std::string& text) {
  switch (kind) {
    case transport::Notice::Kind::mismatch: throw MismatchError(text);
    case transport::Notice::Kind::timeout: throw TimeoutError(text);
    case transport::Notice::Kind::peer_lost:
    case transport::Notice::Kind::inquiry: break;
  }
  throw PeerLostError(text);
}

}  // namespace tutti::engine::node
