#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"
#include "tutti/types.hpp"

namespace tutti::bench {

/// Exactly predictable data: small whole numbers that repeat after `period` elements and are others in each
/// of four turns of iterations. Any type; the results of every op are known to the bit.
class Pattern {
 public:
  Pattern(DType type, Op op, Rank ranks);

  /// Prime: no block, segment or cache line is a multiple of it.
  static constexpr std::size_t period = 1021;

  /// Fills with what `rank` contributes in an iteration.
  void fill(std::span<std::byte> buffer, Rank rank, std::uint64_t iteration) const;

  /// How many elements are not the reduction over all ranks.
  std::size_t wrong_sum(std::span<const std::byte> buffer, std::uint64_t iteration) const {
    return wrong_part(buffer, iteration, 0);
  }

  /// The same for a part of the reduction that starts with element `first`.
  std::size_t wrong_part(std::span<const std::byte> buffer, std::uint64_t iteration, std::size_t first) const;
  /// How many elements are not what `rank` contributes.
  std::size_t wrong_copy(std::span<const std::byte> buffer, Rank rank, std::uint64_t iteration) const;

 private:
  static constexpr std::uint64_t turns = 4;

  std::vector<std::byte> encode(const std::vector<double>& values, double divisor) const;
  std::size_t wrong(std::span<const std::byte> buffer, const std::vector<std::byte>& expected,
                    std::size_t first) const;

  DType type_;
  std::vector<std::vector<std::byte>> contributions_;  ///< by rank * turns + turn
  std::vector<std::vector<std::byte>> results_;        ///< by turn
};

}  // namespace tutti::bench
