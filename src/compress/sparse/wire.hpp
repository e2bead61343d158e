#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::compress {

/// How entries (index, value) of a piece travel. All numbers are little endian, nothing is padded:
///
///     u32 entries | values | indices, increasing
///
/// Values: binary32 each, the upper half of it each, or one binary32 for all. The form of the indices follows
/// from the elements n of the piece and the entries k; the one whose bound is smallest, the first of equals:
///   gaps    2 · (k + n / 65535) bytes at most. u16 for each entry: elements between it and the one before;
///           65535 is no entry, but so many elements passed over.
///   numbers 4 · k bytes: u32 each; where entries are further apart than 65535 elements.
///   bitmap  ceil(n / 8) bytes: bit i % 8 of byte i / 8 is element i; above 6 % of the elements.
class Format {
 public:
  enum class Values : std::uint8_t { fp32, bf16, one };

  explicit Format(Values values) : values_(values) {}

  /// Bytes of any encoding with up to `entries` entries of `count` elements. Throws InvalidArgument if
  /// indices would not fit into 32 bits.
  std::size_t bound(std::size_t count, std::size_t entries) const;

  /// Of `one`, `values` is that value. Returns the bytes used.
  std::size_t write(std::size_t count, std::span<const std::uint32_t> index, std::span<const float> values,
                    std::span<std::byte> out) const;

  /// out = the values at their indices, else 0. Throws MismatchError if `in` is not exactly one encoding of
  /// out.size() elements; then `out` is untouched.
  void decode(std::span<const std::byte> in, std::span<float> out) const;
  /// The same, added.
  void decode_add(std::span<const std::byte> in, std::span<float> sum) const;

 private:
  std::size_t values_bytes(std::size_t entries) const;
  std::vector<std::uint32_t> read_indices(std::span<const std::byte> in, std::size_t count) const;
  template <class Take>
  void scatter(std::span<const std::byte> in, std::span<const std::uint32_t> index, const Take& take) const;

  Values values_;
};

}  // namespace tutti::compress
