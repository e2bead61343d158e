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
      cell_bytes_(cell_bytes),
      memory_(sharer.share(place, to_pages(sizeof(Control)) + cells_per_rank * cell_bytes)),
      scratch_(static_cast<std::size_t>(place.ranks)),
      arena_(place.rank, place.ranks),
      names_(std::move(names)),
      watch_(place) {
  const std::size_t part = memory_->bytes() / static_cast<std::size_t>(ranks_);
  for (std::size_t r = 0; r < scratch_.size(); ++r)
    controls_.push_back(reinterpret_cast<Control*>(memory_->data() + part * r));
  for (std::size_t cell = 0; cell < cells_per_rank; ++cell) {
    for (std::size_t r = 0; r < scratch_.size(); ++r)
      cells_.push_back(memory_->data() + part * r + to_pages(sizeof(Control)) + cell * cell_bytes);
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
    Plight& plight = of(r).plight;
    const std::uint64_t entered = plight.entered.load(std::memory_order_acquire);
    const std::uint64_t left = plight.left.load(std::memory_order_acquire);
    if (entered == 0) {
      lines += fmt::format("\n  {}: has called nothing yet", name(r));
      continue;
    }
    const Call& call = plight.calls[(entered - 1) % plight.calls.size()];
    transport::Signature signature;
    for (std::size_t i = 0; i < signature.words.size(); ++i)
      signature.words[i] = call.signature[i].load(std::memory_order_relaxed);
    lines += fmt::format("\n  {}: {} operation #{}, {}", name(r), left >= entered ? "has ended" : "is in",
                         entered - 1, describe(signature));
  }
  return lines;
}

}  // namespace tutti::engine::node
