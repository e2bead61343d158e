#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/schedule.hpp"

namespace tutti::schedule {

/// A message that waits for its partner.
struct Posted {
  Rank rank = 0;  ///< who posted it
  Step step;
};

/// Pairs sends with receives: for each ordered pair of ranks and strand the n-th send with the n-th receive.
/// An open-addressed table that only grows, and lists in one pool: no allocation per message.
class Pairing {
 public:
  /// The partner of `mine` if it is there already (and then no more); otherwise keeps `mine`.
  std::optional<Posted> match(Rank from, Rank to, std::uint32_t strand, bool is_send, const Posted& mine) {
    Queue& queue = find(key_of(from, to, strand));
    if (queue.head != none && queue.holds_sends != is_send) {
      const std::uint32_t node = queue.head;
      const Posted other = pool_[node].posted;
      queue.head = pool_[node].next;
      pool_[node].next = free_;
      free_ = node;
      return other;
    }
    const std::uint32_t node = take(mine);
    if (queue.head == none) {
      queue.head = node;
      queue.holds_sends = is_send;
    } else {
      pool_[queue.tail].next = node;
    }
    queue.tail = node;
    return std::nullopt;
  }

  /// Any message of this rank and strand that has found no partner.
  std::optional<Step> first_open(Rank rank, std::uint32_t strand) const {
    for (const Queue& queue : table_) {
      for (std::uint32_t node = queue.key == 0 ? none : queue.head; node != none; node = pool_[node].next) {
        const Posted& posted = pool_[node].posted;
        if (posted.rank == rank && posted.step.strand == strand) return posted.step;
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Queue {
    std::uint64_t key = 0;
    std::uint32_t head = none;
    std::uint32_t tail = none;
    bool holds_sends = false;
  };

  struct Node {
    Posted posted;
    std::uint32_t next = none;
  };

  static std::uint64_t key_of(Rank from, Rank to, std::uint32_t strand) {
    return ((static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint64_t>(to)) << 2U | strand) + 1;
  }

  Queue& find(std::uint64_t key) {
    if (used_ * 2 >= table_.size()) grow();
    std::size_t at = slot_of(key);
    while (table_[at].key != 0 && table_[at].key != key) at = (at + 1) & (table_.size() - 1);
    if (table_[at].key == 0) {
      table_[at].key = key;
      ++used_;
    }
    return table_[at];
  }

  std::size_t slot_of(std::uint64_t key) const {
    return (key * 0x9e3779b97f4a7c15ULL >> 20U) & (table_.size() - 1);
  }

  void grow() {
    std::vector<Queue> old(table_.empty() ? 64 : table_.size() * 2);
    old.swap(table_);
    for (const Queue& queue : old) {
      if (queue.key == 0) continue;
      std::size_t at = slot_of(queue.key);
      while (table_[at].key != 0) at = (at + 1) & (table_.size() - 1);
      table_[at] = queue;
    }
  }

  std::uint32_t take(const Posted& posted) {
    if (free_ == none) {
      pool_.push_back({posted});
      return static_cast<std::uint32_t>(pool_.size() - 1);
    }
    const std::uint32_t node = free_;
    free_ = pool_[node].next;
    pool_[node] = {posted};
    return node;
  }

  std::vector<Queue> table_;
  std::size_t used_ = 0;
  std::vector<Node> pool_;
  std::uint32_t free_ = none;
};

}  // namespace tutti::schedule
