// The loops: sources are combined in canonical order, vector by vector, in one pass. Compiled once for each
// instruction set.
#if defined(TUTTI_KERNEL_COMBINE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_COMBINE_INL
#undef TUTTI_KERNEL_COMBINE_INL
#else
#define TUTTI_KERNEL_COMBINE_INL
#endif

#include "base/canonical.hpp"
#include "kernel/simd/job.hpp"
#include "kernel/simd/operations-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

/// A reduction: sources of type `source_type` (the second of a mixed job: of `second_type`), computed in
/// lanes of type Lane by Operation, divided if `divided`, stored as `target_type`.
template <DType source_type, DType target_type, class Lane, class Operation, bool divided = false,
          DType second_type = source_type>
struct Loop {
  using D = hn::ScalableTag<Lane>;
  using V = hn::Vec<D>;
  using Sources = const void* const*;
  static constexpr std::size_t source_bytes = sizeof(Stored<source_type>);
  static constexpr std::size_t second_bytes = sizeof(Stored<second_type>);
  static constexpr std::size_t target_bytes = sizeof(Stored<target_type>);

  /// `lanes` elements of source `which` from element `at` on; a constant Lanes(d) makes it one load.
  template <bool whole>
  static HWY_INLINE V value(Sources sources, std::uint32_t which, std::size_t at, std::size_t lanes) {
    const D d;
    const auto* const p = static_cast<const std::byte*>(sources[which]);
    if constexpr (second_type != source_type) {
      if (which == 1) {
        if constexpr (whole) return load<second_type>(d, p + at * second_bytes);
        return load_first<second_type>(d, p + at * second_bytes, lanes);
      }
    }
    if constexpr (whole) return load<source_type>(d, p + at * source_bytes);
    return load_first<source_type>(d, p + at * source_bytes, lanes);
  }

  /// The canonical tree over `count` leaves from `first` on, of p sources, all known to the compiler.
  template <std::uint32_t p, std::uint32_t first, std::uint32_t count>
  static HWY_INLINE V tree(Sources sources, std::size_t at) {
    const D d;
    if constexpr (count > 1) {
      const V left = tree<p, first, count / 2>(sources, at);
      return Operation::apply(d, left, tree<p, first + count / 2, count / 2>(sources, at));
    } else {
      constexpr std::uint32_t from = base::canonical_first(p, first);
      const V leaf = value<true>(sources, from, at, 0);
      if constexpr (base::canonical_first(p, first + 1) - from == 1) {
        return leaf;
      } else {
        return Operation::apply(d, leaf, value<true>(sources, from + 1, at, 0));
      }
    }
  }

  template <bool whole>
  static HWY_INLINE V leaf(Sources sources, std::uint32_t p, std::uint32_t i, std::size_t at,
                           std::size_t lanes) {
    const std::uint32_t from = base::canonical_first(p, i);
    const V first = value<whole>(sources, from, at, lanes);
    if (base::canonical_first(p, i + 1) - from == 1) return first;
    return Operation::apply(D(), first, value<whole>(sources, from + 1, at, lanes));
  }

  /// The same tree for any p: partial sums of equal height meet as the digits of a binary counter carry.
  template <std::size_t unroll, bool whole>
  static HWY_INLINE void any_tree(const Job& job, std::size_t at, std::size_t lanes) {
    const D d;
    const std::uint32_t leaves = base::canonical_leaves(job.source_count);
    V partial[32][unroll];
    std::size_t height = 0;
    for (std::uint32_t i = 0; i < leaves; ++i) {
      V sum[unroll];
      for (std::size_t u = 0; u < unroll; ++u)
        sum[u] = leaf<whole>(job.sources, job.source_count, i, at + u * hn::MaxLanes(d), lanes);
      for (std::uint32_t carry = i; (carry & 1U) != 0; carry >>= 1U) {
        --height;
        for (std::size_t u = 0; u < unroll; ++u) sum[u] = Operation::apply(d, partial[height][u], sum[u]);
      }
      for (std::size_t u = 0; u < unroll; ++u) partial[height][u] = sum[u];
      ++height;
    }
    for (std::size_t u = 0; u < unroll; ++u)
      finish<whole>(job, partial[0][u], at + u * hn::MaxLanes(d), lanes);
  }

  template <bool whole>
  static HWY_INLINE void finish(const Job& job, V v, std::size_t at, std::size_t lanes) {
    const D d;
    if constexpr (divided) v = divide(d, v, job.divisor);
    if constexpr (std::is_floating_point_v<Lane>) v = canonical_nan(d, v);
    auto* const p = static_cast<std::byte*>(job.target) + at * target_bytes;
    if constexpr (whole) {
      store<target_type>(d, v, p);
    } else {
      store_first<target_type>(d, v, p, lanes);
    }
  }

  /// p sources, several vectors in flight; returns how many elements are done.
  template <std::uint32_t p>
  static HWY_NOINLINE std::size_t fixed(const Job& job) {
    constexpr std::size_t lanes = hn::MaxLanes(D());
    constexpr std::size_t unroll = 4;
    const void* sources[p];
    for (std::uint32_t i = 0; i < p; ++i) sources[i] = job.sources[i];
    const Job local = job;
    std::size_t at = 0;
    for (; local.count - at >= unroll * lanes; at += unroll * lanes) {
      V v[unroll];
      for (std::size_t u = 0; u < unroll; ++u)
        v[u] = tree<p, 0, base::canonical_leaves(p)>(sources, at + u * lanes);
      for (std::size_t u = 0; u < unroll; ++u) finish<true>(local, v[u], at + u * lanes, lanes);
    }
    for (; local.count - at >= lanes; at += lanes)
      finish<true>(local, tree<p, 0, base::canonical_leaves(p)>(sources, at), at, lanes);
    return at;
  }

  static HWY_NOINLINE std::size_t any(const Job& job) {
    constexpr std::size_t lanes = hn::MaxLanes(D());
    constexpr std::size_t unroll = 4;
    std::size_t at = 0;
    for (; job.count - at >= unroll * lanes; at += unroll * lanes) any_tree<unroll, true>(job, at, lanes);
    for (; job.count - at >= lanes; at += lanes) any_tree<1, true>(job, at, lanes);
    return at;
  }

  static HWY_NOINLINE void tail(const Job& job, std::size_t at) {
    any_tree<1, false>(job, at, job.count - at);
  }

  /// Everything but two sources in the generic loop: for operations that are seldom in a hurry.
  static void pairs(const Job& job) {
    const std::size_t done = job.source_count == 2 ? fixed<2>(job) : any(job);
    if (done < job.count) tail(job, done);
  }

  static void two(const Job& job) {
    const std::size_t done = fixed<2>(job);
    if (done < job.count) tail(job, done);
  }

  /// All small numbers of sources in loops of their own.
  static void all(const Job& job) {
    std::size_t done = 0;
    switch (job.source_count) {
      case 1: done = fixed<1>(job); break;
      case 2: done = fixed<2>(job); break;
      case 3: done = fixed<3>(job); break;
      case 4: done = fixed<4>(job); break;
      case 8: done = fixed<8>(job); break;
      default: done = any(job);
    }
    if (done < job.count) tail(job, done);
  }
};

/// target[i] = source[i] * factor, in lanes of type Lane.
template <DType source_type, DType target_type, class Lane>
void scale_loop(const ScaleJob& job) {
  const hn::ScalableTag<Lane> d;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  const auto factor = hn::Set(d, static_cast<Lane>(job.factor));
  const auto* source = static_cast<const std::byte*>(job.source);
  auto* target = static_cast<std::byte*>(job.target);
  std::size_t left = job.count;
  for (; left >= lanes; left -= lanes) {
    const auto v = hn::Mul(load<source_type>(d, source), factor);
    store<target_type>(d, canonical_nan(d, v), target);
    source += lanes * sizeof(Stored<source_type>);
    target += lanes * sizeof(Stored<target_type>);
  }
  if (left == 0) return;
  const auto v = hn::Mul(load_first<source_type>(d, source, left), factor);
  store_first<target_type>(d, canonical_nan(d, v), target, left);
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
