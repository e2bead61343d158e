// The loops: sources are combined in canonical order, vector by vector, in one pass. Compiled once for each
// instruction set.
#if defined(TUTTI_KERNEL_COMBINE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_COMBINE_INL
#undef TUTTI_KERNEL_COMBINE_INL
#else
#define TUTTI_KERNEL_COMBINE_INL
#endif

#include <algorithm>

#include "base/canonical.hpp"
#include "kernel/simd/job.hpp"
#include "kernel/simd/layouts-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::kernel::HWY_NAMESPACE {

/// A reduction: sources of type `source_type` (the second of a mixed job: of `second_type`), computed in
/// `Layout` by Operation, divided if `divided`, stored as `target_type`.
template <DType source_type, DType target_type, class Layout, class Operation, bool divided = false,
          DType second_type = source_type>
class Loop {
 public:
  /// Two sources only.
  static void two(const Job& job) { run(job, fixed<2>); }

  /// Any number of sources, but only two have a loop of their own: for what is seldom in a hurry.
  static void few(const Job& job) { run(job, job.source_count == 2 ? fixed<2> : any); }

  /// Any number of sources. Sums, which gradients are made of, have loops for every small number.
  static void all(const Job& job) {
    if constexpr (!std::is_same_v<Operation, Sum>) {
      few(job);
    } else {
      switch (job.source_count) {
        case 1: return run(job, fixed<1>);
        case 2: return run(job, fixed<2>);
        case 3: return run(job, fixed<3>);
        case 4: return run(job, fixed<4>);
        case 8: return run(job, fixed<8>);
        default: return run(job, HWY_TARGET == HWY_SCALAR ? any : tall);
      }
    }
  }

 private:
  using V = typename Layout::V;
  using Sources = const void* const*;
  using Divide = Divisor<typename Layout::Lane>;
  static constexpr std::size_t step = Layout::elements;
  static constexpr std::size_t source_bytes = sizeof(Stored<source_type>);
  static constexpr std::size_t second_bytes = sizeof(Stored<second_type>);
  static constexpr std::size_t target_bytes = sizeof(Stored<target_type>);
  /// How many vectors fixed() has in flight: one where a vector takes many instructions anyway.
  static constexpr bool slow_half =
      (source_type == DType::f16 || target_type == DType::f16) && !TUTTI_KERNEL_NATIVE_F16;
  static constexpr bool slow_division = divided && std::is_integral_v<typename Layout::Lane>;
  static constexpr std::size_t unroll = HWY_TARGET == HWY_SCALAR || slow_half || slow_division ? 1 : 4;

  /// How many elements from `at` on a loop is to do: as many whole vectors as there are, or the first few
  /// elements of one vector.
  struct Range {
    std::size_t at, end;
  };

  template <DType type>
  static HWY_NOINLINE V load_part(const std::byte* p, std::size_t elements) {
    alignas(64) std::byte buffer[step * sizeof(Stored<type>)] = {};
    std::memcpy(buffer, p, elements * sizeof(Stored<type>));
    return Layout::template load<type>(buffer);
  }

  template <DType type, bool whole>
  static HWY_INLINE V load_from(const void* array, Range range) {
    const std::byte* const p = static_cast<const std::byte*>(array) + range.at * sizeof(Stored<type>);
    if constexpr (whole) return Layout::template load<type>(p);
    return load_part<type>(p, range.end - range.at);
  }

  template <bool whole>
  static HWY_INLINE V value(Sources sources, std::uint32_t which, Range range) {
    if constexpr (second_type != source_type) {
      if (which == 1) return load_from<second_type, whole>(sources[1], range);
    }
    return load_from<source_type, whole>(sources[which], range);
  }

  /// The canonical tree over `count` leaves from `first` on, of p sources, all known to the compiler.
  template <std::uint32_t p, std::uint32_t first = 0, std::uint32_t count = base::canonical_leaves(p)>
  static HWY_INLINE V tree(Sources sources, Range range) {
    if constexpr (count > 1) {
      const V left = tree<p, first, count / 2>(sources, range);
      const V right = tree<p, first + count / 2, count / 2>(sources, range);
      return Layout::template apply<Operation>(left, right);
    } else {
      constexpr std::uint32_t from = base::canonical_first(p, first);
      const V head = value<true>(sources, from, range);
      if constexpr (base::canonical_first(p, first + 1) - from == 1) {
        return head;
      } else {
        return Layout::template apply<Operation>(head, value<true>(sources, from + 1, range));
      }
    }
  }

  template <bool whole>
  static HWY_INLINE void finish(const Job& job, const Divide& divisor, V v, Range range) {
    if constexpr (divided) v = Layout::divide(v, divisor);
    std::byte* const p = static_cast<std::byte*>(job.target) + range.at * target_bytes;
    if constexpr (whole) {
      Layout::template store<target_type>(v, p);
    } else {
      alignas(64) std::byte buffer[step * target_bytes];
      Layout::template store<target_type>(v, buffer);
      std::memcpy(p, buffer, (range.end - range.at) * target_bytes);
    }
  }

  /// Whole vectors of p sources, several in flight.
  template <std::uint32_t p>
  static HWY_NOINLINE std::size_t fixed(const Job& job, Range range) {
    const void* sources[p];
    for (std::uint32_t i = 0; i < p; ++i) sources[i] = job.sources[i];
    const Job local = job;
    const Divide divisor(divided ? local.divisor : 1);
    for (; range.end - range.at >= unroll * step; range.at += unroll * step) {
      V v[unroll];
      for (std::size_t u = 0; u < unroll; ++u) v[u] = tree<p>(sources, {range.at + u * step, range.end});
      for (std::size_t u = 0; u < unroll; ++u)
        finish<true>(local, divisor, v[u], {range.at + u * step, range.end});
    }
    for (; range.end - range.at >= step; range.at += step)
      finish<true>(local, divisor, tree<p>(sources, range), range);
    return range.at;
  }

  template <bool whole>
  static HWY_INLINE V leaf(Sources sources, std::uint32_t p, std::uint32_t i, Range range) {
    const std::uint32_t from = base::canonical_first(p, i);
    const V first = value<whole>(sources, from, range);
    if (base::canonical_first(p, i + 1) - from == 1) return first;
    return Layout::template apply<Operation>(first, value<whole>(sources, from + 1, range));
  }

  /// One vector, or part of one, of any number of sources: sums of equal height meet as the digits of a
  /// binary counter carry.
  template <bool whole>
  static HWY_INLINE void one_tree(const Job& job, const Divide& divisor, Range range) {
    const std::uint32_t leaves = base::canonical_leaves(job.source_count);
    V partial[32];
    std::size_t height = 0;
    for (std::uint32_t i = 0;; ++i) {
      V sum = leaf<whole>(job.sources, job.source_count, i, range);
      for (std::uint32_t carry = i; (carry & 1U) != 0; carry >>= 1U)
        sum = Layout::template apply<Operation>(partial[--height], sum);
      if (i + 1 == leaves) return finish<whole>(job, divisor, sum, range);
      partial[height++] = sum;
    }
  }

  /// How many vectors of each source tall_tree() takes before it turns to the next source.
  static constexpr std::size_t most = 8;

  template <std::uint32_t p>
  static HWY_INLINE void trees(Sources sources, Range range, V* sums) {
#pragma GCC unroll 1
    for (; range.at < range.end; range.at += step) *sums++ = tree<p>(sources, range);
  }

  static HWY_INLINE void group(Sources sources, std::uint32_t p, Range range, V* sums) {
    switch (p) {
      case 4: return trees<4>(sources, range, sums);
      case 5: return trees<5>(sources, range, sums);
      case 6: return trees<6>(sources, range, sums);
      case 7: return trees<7>(sources, range, sums);
      default: return trees<8>(sources, range, sums);
    }
  }

  /// At most `most` vectors of 4 sources or more. The same tree, but four neighbouring leaves at a time: they
  /// are the whole tree over the 4 to 8 sources in them, which the compiler knows.
  static HWY_INLINE void tall_tree(const Job& job, const Divide& divisor, Range range) {
    const std::uint32_t leaves = base::canonical_leaves(job.source_count);
    V partial[30][most];
    std::size_t height = 0;
    for (std::uint32_t first = 0; first < leaves; first += 4) {
      const std::uint32_t from = base::canonical_first(job.source_count, first);
      const std::uint32_t to = base::canonical_first(job.source_count, first + 4);
      group(job.sources + from, to - from, range, partial[height++]);
      for (std::uint32_t carry = first / 4; (carry & 1U) != 0; carry >>= 1U) {
        --height;
        V* sum = partial[height - 1];
        const V* right = partial[height];
#pragma GCC unroll 1
        for (std::size_t at = range.at; at < range.end; at += step, ++sum, ++right)
          *sum = Layout::template apply<Operation>(*sum, *right);
      }
    }
    const V* sum = partial[0];
#pragma GCC unroll 1
    for (; range.at < range.end; range.at += step) finish<true>(job, divisor, *sum++, range);
  }

  /// Whole vectors of any number of sources; at least four are added faster by tall().
  static HWY_NOINLINE std::size_t any(const Job& job, Range range) {
    const Divide divisor(divided ? job.divisor : 1);
#pragma GCC unroll 1
    for (; range.end - range.at >= step; range.at += step) one_tree<true>(job, divisor, range);
    return range.at;
  }

  static HWY_NOINLINE std::size_t tall(const Job& job, Range range) {
    const Divide divisor(divided ? job.divisor : 1);
    const std::size_t end = range.end - (range.end - range.at) % step;
    while (range.at < end) {
      const std::size_t next = std::min(range.at + most * step, end);
      tall_tree(job, divisor, {range.at, next});
      range.at = next;
    }
    return end;
  }

  /// Less than a vector.
  static HWY_NOINLINE void part(const Job& job, Range range) {
    one_tree<false>(job, Divide(divided ? job.divisor : 1), range);
  }

  /// Elements before the first whole vector of an aligned target: stores across cache lines cost more than
  /// this does, unless there is little to do.
  static std::size_t head(const Job& job) {
    constexpr std::size_t vector_bytes = step * target_bytes;
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(job.target) % vector_bytes;
    if (beyond == 0 || beyond % target_bytes != 0 || job.count < 32 * step) return 0;
    return (vector_bytes - beyond) / target_bytes;
  }

  static void run(const Job& job, std::size_t (*whole_vectors)(const Job&, Range)) {
    const std::size_t first = head(job);
    if (first != 0) part(job, {0, first});
    const std::size_t done = whole_vectors(job, {first, job.count});
    if (done < job.count) part(job, {done, job.count});
  }
};

/// target[i] = source[i] * factor, in lanes of type Lane.
template <DType source_type, DType target_type, class Lane>
void scale_loop(const ScaleJob& job) {
  using Layout = OneVector<Lane>;
  constexpr std::size_t step = Layout::elements;
  constexpr std::size_t source_bytes = sizeof(Stored<source_type>);
  constexpr std::size_t target_bytes = sizeof(Stored<target_type>);
  const auto factor = hn::Set(typename Layout::D(), static_cast<Lane>(job.factor));
  const auto* source = static_cast<const std::byte*>(job.source);
  auto* target = static_cast<std::byte*>(job.target);
  std::size_t left = job.count;
  for (; left >= step; left -= step) {
    const auto v = Layout::template load<source_type>(source);
    Layout::template store<target_type>(hn::Mul(v, factor), target);
    source += step * source_bytes;
    target += step * target_bytes;
  }
  if (left == 0) return;
  alignas(64) std::byte in[step * source_bytes] = {};
  alignas(64) std::byte out[step * target_bytes];
  std::memcpy(in, source, left * source_bytes);
  Layout::template store<target_type>(hn::Mul(Layout::template load<source_type>(in), factor), out);
  std::memcpy(target, out, left * target_bytes);
}

}  // namespace tutti::kernel::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
