#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/simd/select.cpp"
#include "kernel/simd/targets.hpp"
// Compiles this file for every instruction set.
#include "hwy/foreach_target.h"
// After it, by Highway's rule.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "compress/simd/select.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;

/// passes(), lane by lane. Keys are never negative as signed numbers, which is what every instruction set
/// compares.
struct Passing {
  hn::Vec<Ints> below;
  hn::Vec<Ints> flip;
  bool both;

  explicit Passing(Cut cut)
      : below(hn::Set(Ints(), static_cast<std::int32_t>(cut.threshold) - 1)),
        flip(hn::Set(Ints(), cut.side == Side::negative ? INT32_MIN : 0)),
        both(cut.side == Side::both) {}

  HWY_INLINE hn::Mask<Ints> operator()(hn::Vec<Floats> value) const {
    const Ints d;
    const auto bits = hn::BitCast(d, value);
    const auto key = hn::And(bits, hn::Set(d, 0x7FFFFFFF));
    if (both) return hn::Gt(key, below);
    const auto never_left = hn::Gt(key, hn::Set(d, static_cast<std::int32_t>(infinity_key) - 1));
    return hn::Or(hn::Gt(hn::Xor(bits, flip), below), never_left);
  }
};

struct Nothing {
  HWY_INLINE hn::Vec<Floats> lanes(std::size_t i) const { return hn::LoadU(Floats(), values + i); }

  float one(std::size_t i) const { return values[i]; }

  const float* values;
};

struct Add {
  HWY_INLINE hn::Vec<Floats> lanes(std::size_t i) const {
    const Floats d;
    const auto sum = hn::Add(hn::LoadU(d, in + i), hn::LoadU(d, values + i));
    hn::StoreU(sum, d, values + i);
    return sum;
  }

  float one(std::size_t i) const { return values[i] = in[i] + values[i]; }

  const float* in;
  float* values;
};

struct AddMomentum {
  HWY_INLINE hn::Vec<Floats> lanes(std::size_t i) const {
    const Floats d;
    const auto kept = hn::Mul(hn::Set(d, by.beta), hn::LoadU(d, by.momentum + i));
    const auto moved = hn::Add(kept, hn::Mul(hn::Set(d, by.scale), hn::LoadU(d, in + i)));
    hn::StoreU(moved, d, by.momentum + i);
    const auto sum = hn::Add(hn::LoadU(d, values + i), moved);
    hn::StoreU(sum, d, values + i);
    return sum;
  }

  float one(std::size_t i) const {
    by.momentum[i] = by.beta * by.momentum[i] + by.scale * in[i];
    return values[i] += by.momentum[i];
  }

  const float* in;
  Momentum by;
  float* values;
};

/// Bit i: lane i. As long as what is stored, or the compiler goes through memory.
HWY_INLINE std::uint64_t bits_of(hn::Mask<Ints> mask) {
  static_assert(hn::MaxLanes(Ints()) <= 16);
  std::conditional_t<hn::MaxLanes(Ints()) <= 8, std::uint8_t, std::uint16_t> bits = 0;
  hn::StoreMaskBits(Ints(), mask, reinterpret_cast<std::uint8_t*>(&bits));
  return bits;
}

/// Marks groups of four vectors first and walks through the marks afterwards: few groups have any, and a
/// branch that asks each of them is mispredicted as often. Not Compress, which copies its table of a KiB to
/// the stack in every call (Highway 1.0.3).
template <class Update>
std::size_t update_and_find(const Update& update, std::size_t count, Cut cut, std::uint32_t* found) {
  constexpr std::size_t stretch = 2048;
  constexpr std::size_t lanes = hn::MaxLanes(Ints());
  constexpr std::size_t group = 4 * lanes;
  const Passing passing(cut);
  std::array<std::uint64_t, stretch / group> marks;
  std::array<std::uint32_t, stretch / group> places;
  std::uint32_t* next = found;
  std::size_t i = 0;
  while (i + group <= count) {
    const std::size_t end = std::min(count, i + stretch);
    std::size_t marked = 0;
    for (; i + group <= end; i += group) {
      const std::uint64_t low = bits_of(passing(update.lanes(i))) | bits_of(passing(update.lanes(i + lanes)))
                                                                        << lanes;
      const std::uint64_t high = bits_of(passing(update.lanes(i + 2 * lanes))) |
                                 bits_of(passing(update.lanes(i + 3 * lanes))) << lanes;
      const std::uint64_t bits = low | high << (2 * lanes);
      marks[marked] = bits;
      places[marked] = static_cast<std::uint32_t>(i);
      marked += bits != 0 ? 1U : 0U;
    }
    for (std::size_t m = 0; m < marked; ++m) {
      std::uint64_t bits = marks[m];
      do {
        *next++ = places[m] + static_cast<std::uint32_t>(std::countr_zero(bits));
        bits &= bits - 1;
      } while (bits != 0);
    }
  }
  for (; i < count; ++i) {
    if (passes(update.one(i), cut)) *next++ = static_cast<std::uint32_t>(i);
  }
  return static_cast<std::size_t>(next - found);
}

std::size_t find_here(const float* values, std::size_t count, Cut cut, std::uint32_t* found) {
  return update_and_find(Nothing{values}, count, cut, found);
}

std::size_t add_and_find_here(const float* in, float* values, std::size_t count, Cut cut,
                              std::uint32_t* found) {
  return update_and_find(Add{in, values}, count, cut, found);
}

std::size_t momentum_and_find_here(const float* in, Momentum momentum, float* values, std::size_t count,
                                   Cut cut, std::uint32_t* found) {
  return update_and_find(AddMomentum{in, momentum, values}, count, cut, found);
}

void add_and_measure_here(const float* in, float* values, std::size_t count, Extent& extent) {
  const Floats d;
  const Ints di;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t width = 16;
  HWY_ALIGN std::array<float, width> sums{};
  HWY_ALIGN std::array<std::int32_t, width> largest{};
  const Add add{in, values};
  const std::size_t whole = count / width * width;
  // One column of lanes after the other: the cache holds a run, and each keeps its sum in a register.
  for (std::size_t column = 0; column < width; column += lanes) {
    auto sum = hn::Zero(d);
    auto most = hn::Zero(di);
    for (std::size_t i = column; i < whole; i += width) {
      const auto magnitude = hn::Abs(add.lanes(i));
      sum = hn::Add(sum, magnitude);
      most = hn::Max(most, hn::BitCast(di, magnitude));
    }
    hn::Store(sum, d, sums.data() + column);
    hn::Store(most, di, largest.data() + column);
  }
  for (std::size_t i = whole; i < count; ++i) {
    const Key key = key_of(add.one(i));
    sums[i % width] += std::bit_cast<float>(key);
    largest[i % width] = std::max(largest[i % width], static_cast<std::int32_t>(key));
  }
  for (std::size_t half = width / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  extent.sum += static_cast<double>(sums[0]);
  extent.largest = std::max(extent.largest, static_cast<Key>(*std::ranges::max_element(largest)));
}

void count_passing_here(const float* values, std::size_t count, const std::array<Key, cuts>& thresholds,
                        Side side, std::array<std::uint64_t, cuts>& counts) {
  const Floats d;
  const Ints di;
  const std::size_t lanes = hn::Lanes(d);
  // So that no lane counts past 2^31, and values come from the cache for all cuts but the first.
  constexpr std::size_t stretch = 2048;
  for (std::size_t first = 0; first < count; first += stretch) {
    const std::size_t end = std::min(count, first + stretch);
    for (std::size_t cut = 0; cut < cuts; ++cut) {
      const Cut wanted{.threshold = thresholds[cut], .side = side};
      const Passing passing(wanted);
      auto found = hn::Zero(di);
      std::size_t i = first;
      for (; i + lanes <= end; i += lanes)
        found = hn::Sub(found, hn::VecFromMask(di, passing(hn::LoadU(d, values + i))));
      counts[cut] += static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(di, found)));
      for (; i < end; ++i) counts[cut] += passes(values[i], wanted) ? 1U : 0U;
    }
  }
}

}  // namespace tutti::compress::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::compress::simd {

HWY_EXPORT(find_here);
HWY_EXPORT(add_and_find_here);
HWY_EXPORT(momentum_and_find_here);
HWY_EXPORT(add_and_measure_here);
HWY_EXPORT(count_passing_here);

std::size_t find(const float* values, std::size_t count, Cut cut, std::uint32_t* found) {
  return HWY_DYNAMIC_DISPATCH(find_here)(values, count, cut, found);
}

std::size_t add_and_find(const float* in, float* values, std::size_t count, Cut cut, std::uint32_t* found) {
  return HWY_DYNAMIC_DISPATCH(add_and_find_here)(in, values, count, cut, found);
}

std::size_t momentum_and_find(const float* in, Momentum momentum, float* values, std::size_t count, Cut cut,
                              std::uint32_t* found) {
  return HWY_DYNAMIC_DISPATCH(momentum_and_find_here)(in, momentum, values, count, cut, found);
}

void add_and_measure(const float* in, float* values, std::size_t count, Extent& extent) {
  HWY_DYNAMIC_DISPATCH(add_and_measure_here)(in, values, count, extent);
}

void count_passing(const float* values, std::size_t count, const std::array<Key, cuts>& thresholds, Side side,
                   std::array<std::uint64_t, cuts>& counts) {
  HWY_DYNAMIC_DISPATCH(count_passing_here)(values, count, thresholds, side, counts);
}

}  // namespace tutti::compress::simd
#endif
