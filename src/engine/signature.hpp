#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/request.hpp"
#include "transport/transport.hpp"

namespace tutti::engine {

/// What all ranks must have in common in a call: collective, type, op, root, count, name, algorithm, order,
/// prescale and counts. The first message between two ranks carries it.
transport::Signature signature_of(const Request& request);

/// What one rank has called on a communicator, in order.
class CallLog {
 public:
  /// Numbers a call. Its signature also says whether the calls before it were the same.
  std::uint32_t add(const Request& request, transport::Signature& signature);

  std::uint32_t add(const Request& request) {
    transport::Signature signature;
    return add(request, signature);
  }

  transport::Signature at(std::uint32_t sequence) const;
  /// False if that call has not come yet, or is so long ago that it was forgotten.
  bool knows(std::uint32_t sequence) const;

 private:
  static constexpr std::uint32_t kept = 128;

  /// The progress thread compares while the owner calls: words one by one, a torn one is a late one.
  struct Entry {
    std::array<std::atomic<std::uint64_t>, 6> words{};
  };

  std::atomic<std::uint32_t> next_ = 0;
  std::uint64_t history_ = 0;
  std::array<Entry, kept> entries_{};
};

/// A signature in one word.
std::uint64_t one_word(const transport::Signature& signature);

inline constexpr std::string_view same_everywhere =
    "call the same operations in the same order, with the same count, type, op and name, on every rank";

/// "operation #7 there is allreduce sum of 12 f32, here allgather of 12 f32": in words, what differs.
std::string difference(const transport::Signature& here, const transport::Signature& there);

/// "allreduce sum of 1024 f32 'conv1.weight'": names are cut after 16 characters.
std::string describe(const transport::Signature& signature);

}  // namespace tutti::engine
