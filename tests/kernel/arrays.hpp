#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernel/kernel.hpp"
#include "kernel/reference.hpp"
#include "support/catch.hpp"

/// What the kernel tests share: arrays at any alignment between guards, and values that have hurt others.
namespace arrays {

inline constexpr tutti::DType types[]{
    tutti::DType::f32, tutti::DType::f64, tutti::DType::f16, tutti::DType::bf16, tutti::DType::i8,
    tutti::DType::u8,  tutti::DType::i32, tutti::DType::u32, tutti::DType::i64,  tutti::DType::u64};
inline constexpr tutti::Op ops[]{tutti::Op::sum, tutti::Op::average, tutti::Op::min, tutti::Op::max,
                                 tutti::Op::product};

/// `bytes` bytes that start `offset` bytes after a multiple of 64, between guards of 64 bytes.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t offset)
      : bytes_(bytes), storage_(bytes + offset + 3 * guard, filler) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    start_ = (64 - address % 64) % 64 + guard + offset;
  }

  Guarded(const std::vector<std::byte>& content, std::size_t offset) : Guarded(content.size(), offset) {
    std::copy(content.begin(), content.end(), data());
  }

  std::byte* data() { return storage_.data() + start_; }

  std::vector<std::byte> content() const {
    const auto first = storage_.begin() + static_cast<std::ptrdiff_t>(start_);
    return {first, first + static_cast<std::ptrdiff_t>(bytes_)};
  }

  /// Nothing outside was written.
  bool intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      if ((i < start_ || i >= start_ + bytes_) && storage_[i] != filler) return false;
    return true;
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte filler{0xa5};
  std::size_t bytes_;
  std::size_t start_ = 0;
  std::vector<std::byte> storage_;
};

/// Patterns of `type` at its borders: zeros, denormals, largest, infinities, NaN quiet and signalling with
/// payloads and either sign; extreme integers.
std::vector<std::uint64_t> special_patterns(tutti::DType type);

/// `count` elements: special patterns, arbitrary patterns, and ordinary numbers.
std::vector<std::byte> values(tutti::DType type, std::size_t count, std::uint64_t seed);

/// Runs `body` on every instruction set, then sets the best one again.
template <class Body>
void on_every_target(const Body& body) {
  struct Restore {
    ~Restore() { tutti::kernel::force_simd_target(""); }
  } restore;

  for (const std::string_view target : tutti::kernel::simd_targets()) {
    tutti::kernel::force_simd_target(target);
    INFO("instruction set " << target);
    REQUIRE(tutti::kernel::simd_target() == target);
    body();
  }
}

/// "f16 sum" and the like.
inline std::string label(tutti::DType type, tutti::Op op) {
  return fmt::format("{} {}", tutti::name_of(type), tutti::name_of(op));
}

/// The element type, and its accumulator if that is another.
inline std::vector<tutti::DType> forms(tutti::DType type, tutti::Op op) {
  const tutti::DType wide = reference::accumulator(type, op);
  if (wide == type) return {type};
  return {type, wide};
}

/// "element 3 of 5: expected 0x7e00, found 0xfe00", or empty if all are equal.
std::string first_difference(tutti::DType type, const std::vector<std::byte>& expected,
                             const std::vector<std::byte>& found);

}  // namespace arrays
