#pragma once

#include <cstddef>
#include <cstdint>

#include "base/canonical.hpp"
#include "cuda/kernels/cta.hpp"
#include "cuda/kernels/elements.hpp"
#include "cuda/kernels/messages.hpp"

namespace tutti::cuda {

/// Partial results of a tree whose leaves come one after the other, as a binary counter: level by level, no
/// array that is indexed at run time.
template <Op op, class T, unsigned levels>
class Tree {
 public:
  /// Leaf `number`; every level that is full goes up.
  TUTTI_DEVICE void add(std::uint32_t number, const FourOf<T>& leaf) {
    if (number % 2 == 0) {
      held_ = leaf;
      return;
    }
    FourOf<T> sum;
    for (unsigned j = 0; j < 4; ++j) sum.v[j] = combined<op>(held_.v[j], leaf.v[j]);
    above_.add(number / 2, sum);
  }

  /// After so many leaves, a power of two.
  TUTTI_DEVICE FourOf<T> of(std::uint32_t leaves) const {
    return leaves == 1 ? held_ : above_.of(leaves / 2);
  }

 private:
  FourOf<T> held_{};
  Tree<op, T, levels - 1> above_;
};

template <Op op, class T>
class Tree<op, T, 0> {
 public:
  TUTTI_DEVICE void add(std::uint32_t /*number*/, const FourOf<T>& leaf) { held_ = leaf; }

  TUTTI_DEVICE FourOf<T> of(std::uint32_t /*leaves*/) const { return held_; }

 private:
  FourOf<T> held_{};
};

/// target = all contributions, in the canonical order (base/canonical.hpp), in one pass:
/// kernel::reduce_many(), with the same bits. Of one contribution it is kernel::convert().
template <DType type, Op op>
struct Reduce {
  static constexpr unsigned threads = 256;
  static constexpr unsigned most_levels = 6;
  static_assert(most_peers == 1U << most_levels);

  struct Args {
    Messages contributions;
    void* target;
    std::uint64_t count;
    std::uint64_t divisor;    ///< 0: none
    bool wide_contributions;  ///< of the accumulator's type instead of `type`
    bool wide_target;
  };

  struct Shared {};

  static std::uint64_t blocks_for(const Args& args) { return blocks_of_fours(args.count, threads); }

  template <class Cta>
  TUTTI_DEVICE static void run(Cta& cta, Shared& /*shared*/, const Args& args) {
    const std::uint32_t p = args.contributions.count;
    const bool copies = p == 1 && args.divisor == 0 && args.wide_contributions == args.wide_target;
    each_four(cta, threads, args.count, [&](std::uint64_t at, unsigned valid) {
      if (copies)
        copy(args, at, valid);
      else
        store(args, at, valid, sum(args, p, at, valid));
    });
  }

 private:
  using T = Lane<type, op>;
  using S = Stored<type>;

  TUTTI_DEVICE static FourOf<T> load(const Args& args, std::uint32_t which, std::uint64_t at,
                                     unsigned valid) {
    if (args.wide_contributions) return load_four_of<T>(args.contributions.of[which], at, valid);
    const FourOf<S> stored = load_four_of<S>(args.contributions.of[which], at, valid);
    FourOf<T> four;
    for (unsigned j = 0; j < 4; ++j) four.v[j] = widened<type, T>(stored.v[j]);
    return four;
  }

  TUTTI_DEVICE static FourOf<T> sum(const Args& args, std::uint32_t p, std::uint64_t at, unsigned valid) {
    std::uint32_t leaves = 1;
    while (2 * leaves <= p) leaves *= 2;
    const std::uint32_t folded = p - leaves;
    Tree<op, T, most_levels> tree;
    for (std::uint32_t i = 0; i < leaves; ++i) {
      const std::uint32_t first = i < folded ? 2 * i : i + folded;
      FourOf<T> leaf = load(args, first, at, valid);
      if (i < folded) {
        const FourOf<T> second = load(args, first + 1, at, valid);
        for (unsigned j = 0; j < 4; ++j) leaf.v[j] = combined<op>(leaf.v[j], second.v[j]);
      }
      tree.add(i, leaf);
    }
    return tree.of(leaves);
  }

  TUTTI_DEVICE static void store(const Args& args, std::uint64_t at, unsigned valid, FourOf<T> four) {
    if (args.divisor != 0) {
      for (T& value : four.v) value = static_cast<T>(value / static_cast<T>(args.divisor));
    }
    if (args.wide_target) {
      for (T& value : four.v) value = canonical_nan(value);
      store_four_of(args.target, at, four, valid);
      return;
    }
    FourOf<S> stored;
    for (unsigned j = 0; j < 4; ++j) stored.v[j] = narrowed<type>(four.v[j]);
    store_four_of(args.target, at, stored, valid);
  }

  /// Keeps the bits of a NaN.
  TUTTI_DEVICE static void copy(const Args& args, std::uint64_t at, unsigned valid) {
    if (args.wide_target)
      store_four_of(args.target, at, load_four_of<T>(args.contributions.of[0], at, valid), valid);
    else
      store_four_of(args.target, at, load_four_of<S>(args.contributions.of[0], at, valid), valid);
  }
};

}  // namespace tutti::cuda
