// Scales of blocks, a vector at a time: the twins of arithmetic/scales.hpp. Compiled once for each
// instruction set.
#if defined(TUTTI_COMPRESS_SCALES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_COMPRESS_SCALES_INL
#undef TUTTI_COMPRESS_SCALES_INL
#else
#define TUTTI_COMPRESS_SCALES_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "compress/arithmetic/block.hpp"
#include "compress/arithmetic/scales.hpp"
#include "compress/simd/codes-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::HWY_NAMESPACE {

/// The values of a block: read, or added up of a gradient and its residual while they are read for the first
/// time, and kept in `sums`. `padded` of them, whole grains; those beyond `count` are zeros.
template <bool feedback>
struct Values {
  const float* HWY_RESTRICT in;
  const float* HWY_RESTRICT residual;
  float* HWY_RESTRICT sums;
  std::size_t padded;
  std::size_t count;

  HWY_INLINE F first(std::size_t i) const {
    const Floats d;
    F value = hn::LoadU(d, in + i);
    if constexpr (feedback) {
      value = hn::Add(value, hn::LoadU(d, residual + i));
      hn::StoreU(value, d, sums + i);
    }
    return value;
  }

  HWY_INLINE const float* again() const { return feedback ? sums : in; }
};

/// The greatest magnitude, as bits.
template <bool feedback>
HWY_INLINE std::uint32_t largest_of(const Values<feedback>& values) {
  const Signed s;
  const std::size_t lanes = hn::Lanes(s);
  const auto mask = hn::Set(s, static_cast<std::int32_t>(magnitude_bits));
  auto most = hn::Zero(s);
  auto other = hn::Zero(s);
  for (std::size_t i = 0; i < values.padded; i += 2 * lanes) {
    most = hn::Max(most, hn::And(hn::BitCast(s, values.first(i)), mask));
    other = hn::Max(other, hn::And(hn::BitCast(s, values.first(i + lanes)), mask));
  }
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(s, hn::Max(most, other))));
}

/// OrderedSum: its lanes are those of several vectors.
class OrderedSums {
 public:
  static constexpr std::size_t vectors = OrderedSum::lanes / hn::MaxLanes(Floats());

  HWY_INLINE OrderedSums() {
    for (F& sum : sums_) sum = hn::Zero(Floats());
  }

  HWY_INLINE void add(std::size_t vector, F value) { sums_[vector] = hn::Add(sums_[vector], value); }

  HWY_INLINE float total() const {
    const Floats d;
    F sums[vectors];
    for (std::size_t i = 0; i < vectors; ++i) sums[i] = sums_[i];
    for (std::size_t half = vectors / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] = hn::Add(sums[i], sums[i + half]);
    }
    alignas(64) float left[hn::MaxLanes(Floats())];
    hn::Store(sums[0], d, left);
    for (std::size_t half = hn::MaxLanes(d) / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) left[i] += left[i + half];
    }
    return left[0];
  }

 private:
  F sums_[vectors];
};

/// The sum of what `of(i)` is for the vector at element i, in the order of OrderedSum.
template <class Of>
HWY_INLINE float ordered_sum(std::size_t padded, const Of& of) {
  OrderedSums sums;
  for (std::size_t i = 0; i < padded; i += OrderedSum::lanes) {
    for (std::size_t v = 0; v < OrderedSums::vectors; ++v) sums.add(v, of(i + v * hn::MaxLanes(Floats())));
  }
  return sums.total();
}

/// block_scale()
struct LargestScale {
  float levels;

  template <bool feedback>
  HWY_INLINE BlockScale of(const Values<feedback>& values) const {
    return block_scale(largest_of(values), levels);
  }
};

/// norm_scale()
struct NormScale {
  float levels;

  template <bool feedback>
  HWY_INLINE BlockScale of(const Values<feedback>& values) const {
    const std::uint32_t largest = largest_of(values);
    return norm_scale(largest, squares(values.again(), values.padded, block_scale(largest, 1.0F).reciprocal),
                      levels);
  }

  static HWY_INLINE float squares(const float* HWY_RESTRICT from, std::size_t padded, float factor) {
    const Floats d;
    const F reciprocal = hn::Set(d, factor);
    return ordered_sum(padded, [&](std::size_t i) HWY_ATTR {
      const F unit = hn::Mul(hn::LoadU(d, from + i), reciprocal);
      return hn::Mul(unit, unit);
    });
  }
};

/// Half the mean of magnitudes.
template <bool feedback>
HWY_INLINE float half_mean_of(const Values<feedback>& values) {
  const F factor = hn::Set(Floats(), half_mean_factor(values.count));
  return ordered_sum(values.padded,
                     [&](std::size_t i) HWY_ATTR { return hn::Mul(hn::Abs(values.first(i)), factor); });
}

/// mean_scale(); nothing is multiplied by its reciprocal.
struct MeanScale {
  template <bool feedback>
  HWY_INLINE BlockScale of(const Values<feedback>& values) const {
    return {mean_scale(half_mean_of(values)), 0.0F};
  }
};

/// ternary_scale()
struct TernaryScale {
  template <bool feedback>
  HWY_INLINE BlockScale of(const Values<feedback>& values) const {
    const float reciprocal = ternary_reciprocal(half_mean_of(values));
    if (is_nan_scale(reciprocal)) return {reciprocal, reciprocal};
    const Floats d;
    const F by = hn::Set(d, reciprocal);
    const F factor = hn::Set(d, half_mean_factor(values.count));
    const F half = hn::Set(d, 0.5F);
    const float* HWY_RESTRICT from = values.again();
    F above = hn::Zero(d);  // whole numbers: any order will do
    const float sum = ordered_sum(values.padded, [&](std::size_t i) HWY_ATTR {
      const F value = hn::LoadU(d, from + i);
      const auto sent = hn::Gt(hn::Abs(hn::Mul(value, by)), half);
      above = hn::Add(above, hn::IfThenElseZero(sent, hn::Set(d, 1.0F)));
      return hn::IfThenElseZero(sent, hn::Mul(hn::Abs(value), factor));
    });
    return {ternary_scale(sum, hn::GetLane(hn::SumOfLanes(d, above)), values.count), reciprocal};
  }
};

/// One that the caller has found.
struct GivenScale {
  BlockScale scale;

  template <bool feedback>
  HWY_INLINE BlockScale of(const Values<feedback>& /*values*/) const {
    static_assert(!feedback);
    return scale;
  }
};

}  // namespace tutti::compress::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
