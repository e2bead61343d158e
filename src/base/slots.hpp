#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tutti::base {

/// Objects behind small numbers that are used again: no allocation once it has grown.
template <class T>
class Slots {
 public:
  std::uint32_t take(T value) {
    if (free_.empty()) {
      items_.push_back(std::move(value));
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    items_[index] = std::move(value);
    return index;
  }

  void release(std::uint32_t index) {
    items_[index] = T{};
    free_.push_back(index);
  }

  T& operator[](std::uint32_t index) { return items_[index]; }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
};

}  // namespace tutti::base
