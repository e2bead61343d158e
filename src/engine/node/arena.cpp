#include "engine/node/arena.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace tutti::engine::node {
namespace {

constexpr unsigned offset_bits = 44;
constexpr std::uint64_t offset_mask = (std::uint64_t{1} << offset_bits) - 1;

/// The first word of each rank's part: whether that rank has given the buffer back.
std::atomic_ref<std::uint32_t> given_back(const std::byte* part) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(part)));
}

}  // namespace

std::byte* Arena::add(std::shared_ptr<transport::SharedMemory> memory) {
  const std::scoped_lock lock(mutex_);
  sweep_locked();
  const std::size_t part = memory->bytes() / ranks_;
  std::byte* const buffer = memory->data() + part * static_cast<std::size_t>(rank_) + header_bytes;
  entries_.push_back({next_++, std::move(memory), part});
  return buffer;
}

void Arena::give_back(const std::byte* buffer) {
  const std::scoped_lock lock(mutex_);
  for (const Entry& entry : entries_) {
    const std::byte* const own = entry.memory->data() + entry.part * static_cast<std::size_t>(rank_);
    if (own + header_bytes == buffer) given_back(own).store(1, std::memory_order_release);
  }
  sweep_locked();
}

bool Arena::given_back_by_all(const Entry& entry) const {
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    if (given_back(entry.memory->data() + entry.part * rank).load(std::memory_order_acquire) == 0)
      return false;
  }
  return true;
}

void Arena::sweep() {
  const std::scoped_lock lock(mutex_);
  sweep_locked();
}

void Arena::sweep_locked() {
  std::erase_if(entries_, [this](const Entry& entry) { return given_back_by_all(entry); });
}

const Arena::Entry* Arena::find(std::uint64_t number) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.number == number; });
  return found == entries_.end() ? nullptr : &*found;
}

Word Arena::word_of(const void* data, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::scoped_lock lock(mutex_);
  for (const Entry& entry : entries_) {
    const std::byte* const own = entry.memory->data() + entry.part * static_cast<std::size_t>(rank_);
    if (begin < own + header_bytes || begin >= own + entry.part) continue;
    const auto offset = static_cast<std::size_t>(begin - own);
    // What does not fit in a word is used like private memory: by all ranks, as numbers are the same.
    const bool fits = entry.number < std::uint64_t{1} << (64 - offset_bits);
    return fits && bytes <= entry.part - offset ? entry.number << offset_bits | offset : 0;
  }
  return 0;
}

std::byte* Arena::at(Word word, Rank rank) const {
  const std::scoped_lock lock(mutex_);
  const Entry* const entry = find(word >> offset_bits);
  if (entry == nullptr) return nullptr;
  return entry->memory->data() + entry->part * static_cast<std::size_t>(rank) + (word & offset_mask);
}

}  // namespace tutti::engine::node
