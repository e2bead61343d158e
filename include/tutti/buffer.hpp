#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace tutti {

/// Memory of this rank that its peers on the node can read in place, so that collectives over it copy less.
/// Made by Communicator::allocate. Zeroed, on a cache-line border at least. Movable; goes when the last copy
/// of it goes, on each rank when it likes, but not while an operation uses it.
template <class T>
class Buffer {
 public:
  Buffer() = default;

  Buffer(std::shared_ptr<std::byte> memory, std::size_t size) : memory_(std::move(memory)), size_(size) {}

  T* data() const noexcept { return reinterpret_cast<T*>(memory_.get()); }

  std::size_t size() const noexcept { return size_; }

  std::span<T> span() const noexcept { return {data(), size_}; }

  T& operator[](std::size_t i) const noexcept { return data()[i]; }

  T* begin() const noexcept { return data(); }

  T* end() const noexcept { return data() + size_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;
};

}  // namespace tutti
