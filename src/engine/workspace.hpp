#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "transport/transport.hpp"

namespace tutti::engine {

/// Uninitialized memory on a cache-line border.
class AlignedBytes {
 public:
  AlignedBytes() = default;

  explicit AlignedBytes(std::size_t bytes)
      : data_(bytes == 0 ? nullptr : static_cast<std::byte*>(::operator new(bytes, alignment))) {}

  std::byte* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t alignment{64};

  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
  };

  std::unique_ptr<std::byte, Free> data_;
};

/// A strand of one segment in flight: its program counter and its messages.
struct Lane {
  std::uint32_t round = 0;
  bool posted = false;
  std::uint32_t open_sends = 0;

  struct Message {
    transport::Ticket ticket = 0;
    enum class Status : std::uint8_t { open, landed, done } status = Status::done;
  };

  std::vector<Message> messages;  ///< one per move of the round
  AlignedBytes scratch;
};

struct Workspace {
  AlignedBytes partial;
  std::vector<Lane> lanes;  ///< one per strand
  std::vector<const void*> contributions;
};

}  // namespace tutti::engine
