#pragma once

#include <bit>
#include <cstdint>

namespace tutti::base {

/// The canonical order over p contributions 0..p-1: with k the largest power of two that is not above p and r
/// = p - k, the first r pairs (2i, 2i+1) are added first; that leaves k partial sums, of which aligned halves
/// are then combined, depth first. p=3: (0+1)+2.  p=5 (k=4, r=1 leaves 0+1, 2, 3, 4): ((0+1)+2)+(3+4).  p=6:
/// ((0+1)+(2+3))+(4+5).
constexpr std::uint32_t canonical_leaves(std::uint32_t p) noexcept {
  return p == 0 ? 0 : std::bit_floor(p);
}

/// First contribution of leaf i, 0 <= i <= canonical_leaves(p); leaf i holds contributions [first(i),
/// first(i+1)), one or two of them.
constexpr std::uint32_t canonical_first(std::uint32_t p, std::uint32_t leaf) noexcept {
  const std::uint32_t folded = p - canonical_leaves(p);
  return leaf < folded ? 2 * leaf : leaf + folded;
}

/// Combines values in canonical order: `value(i)` gives contribution i, `add(a, b)` a partial sum. The
/// specification of the order; p >= 1.
template <class Value, class Add>
auto canonical_sum(std::uint32_t p, const Value& value, const Add& add) {
  struct Recursion {
    std::uint32_t p;
    const Value& value;
    const Add& add;

    auto leaf(std::uint32_t i) const -> decltype(value(0)) {
      const std::uint32_t first = canonical_first(p, i);
      if (canonical_first(p, i + 1) - first == 2) return add(value(first), value(first + 1));
      return value(first);
    }

    auto range(std::uint32_t first, std::uint32_t count) const -> decltype(value(0)) {
      if (count == 1) return leaf(first);
      return add(range(first, count / 2), range(first + count / 2, count / 2));
    }
  };

  return Recursion{p, value, add}.range(0, canonical_leaves(p));
}

}  // namespace tutti::base
