// Codes of scaled values, a vector at a time: the twins of WholeCode and Float8Code. Compiled once for each
// instruction set.
#if defined(TUTTI_COMPRESS_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_COMPRESS_CODES_INL
#undef TUTTI_COMPRESS_CODES_INL
#else
#define TUTTI_COMPRESS_CODES_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "compress/arithmetic/block.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Signed = hn::RebindToSigned<Floats>;
using F = hn::Vec<Floats>;
using W = hn::Vec<Words>;

HWY_INLINE F float_of_word(W bits) {
  return hn::BitCast(Floats(), bits);
}

HWY_INLINE W word_of_float(F value) {
  return hn::BitCast(Words(), value);
}

/// A whole number, and its bits on top of whole_magic_bits.
struct Whole {
  F value;
  W bits;
};

/// whole_nearest(x)
struct Nearest {
  static constexpr bool draws = false;

  HWY_INLINE Whole whole(F x, const std::uint32_t* /*draws*/) const {
    const F magic = hn::Set(Floats(), whole_magic);
    const F sum = hn::Add(x, magic);
    return {hn::Sub(sum, magic), word_of_float(sum)};
  }

  HWY_INLINE F limit(F x, float /*most*/) const { return x; }
};

/// The same within limits.
struct NearestLimited : Nearest {
  HWY_INLINE F limit(F x, float most) const {
    return hn::Max(hn::Min(x, hn::Set(Floats(), most)), hn::Set(Floats(), -most));
  }
};

/// whole_stochastic(x, draw)
struct Stochastic {
  static constexpr bool draws = true;

  HWY_INLINE Whole whole(F x, const std::uint32_t* some) const {
    const Floats d;
    const W draw = hn::ShiftRight<8>(hn::LoadU(Words(), some));
    const F unit = hn::Mul(hn::ConvertTo(d, hn::BitCast(Signed(), draw)), hn::Set(d, 0x1p-24F));
    const F below = hn::Floor(x);
    const F value = hn::Add(below, hn::IfThenElseZero(hn::Lt(unit, hn::Sub(x, below)), hn::Set(d, 1.0F)));
    return {value, word_of_float(hn::Add(value, hn::Set(d, whole_magic)))};
  }

  HWY_INLINE F limit(F x, float most) const {
    return hn::Max(hn::Min(x, hn::Set(Floats(), most)), hn::Set(Floats(), -most));
  }
};

/// A vector of codes, in the lowest byte of each lane (the others are zero), and what they mean.
struct Coded {
  W codes;
  F values;
};

struct WholeLanes {
  template <class Rounding>
  static HWY_INLINE Coded encode(F scaled, float largest, const Rounding& rounding,
                                 const std::uint32_t* some) {
    const Whole whole = rounding.whole(rounding.limit(scaled, largest), some);
    return {hn::And(whole.bits, hn::Set(Words(), 0xFFU)), whole.value};
  }

  static HWY_INLINE F decode(const std::uint8_t* codes) {
    const hn::Rebind<std::int8_t, Floats> bytes;
    return hn::ConvertTo(
        Floats(), hn::PromoteTo(Signed(), hn::LoadU(bytes, reinterpret_cast<const std::int8_t*>(codes))));
  }
};

struct Float8Lanes {
  template <class Rounding>
  static HWY_INLINE Coded encode(F scaled, float largest, const Rounding& rounding,
                                 const std::uint32_t* some) {
    const Floats d;
    const Words w;
    const W bits = word_of_float(rounding.limit(scaled, largest));
    const W sign = hn::AndNot(hn::Set(w, magnitude_bits), bits);
    const F magnitude = float_of_word(hn::And(bits, hn::Set(w, magnitude_bits)));
    const W power =
        hn::And(word_of_float(hn::Max(magnitude, hn::Set(d, 0x1p-6F))), hn::Set(w, infinity_bits));
    const F eighths = hn::Mul(magnitude, float_of_word(hn::Sub(hn::Set(w, 257U << 23U), power)));
    const Whole whole = rounding.whole(eighths, some);
    const W code =
        hn::Sub(hn::Add(hn::ShiftRight<20>(power), whole.bits), hn::Set(w, 968U + whole_magic_bits));
    const W value = word_of_float(hn::Mul(whole.value, float_of_word(hn::Sub(power, hn::Set(w, 3U << 23U)))));
    return {hn::Or(code, hn::ShiftRight<24>(sign)), float_of_word(hn::Or(value, sign))};
  }

  static HWY_INLINE F decode(const std::uint8_t* codes) {
    const Floats d;
    const Words w;
    const hn::Rebind<std::uint8_t, Floats> bytes;
    const auto code = hn::PromoteTo(Signed(), hn::LoadU(bytes, codes));
    const auto magnitude = hn::And(code, hn::Set(Signed(), 0x7F));
    const F denormal = hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-9F));
    const F normal = hn::BitCast(d, hn::Add(hn::ShiftLeft<20>(magnitude), hn::Set(Signed(), 120 << 23)));
    const auto tiny = hn::Lt(magnitude, hn::Set(Signed(), 8));
    const F positive = hn::IfThenElse(hn::RebindMask(d, tiny), denormal, normal);
    const W sign = hn::And(hn::ShiftLeft<24>(hn::BitCast(w, code)), hn::Set(w, ~magnitude_bits));
    const auto nan = hn::Eq(magnitude, hn::Set(Signed(), 0x7F));
    return hn::IfThenElse(hn::RebindMask(d, nan), hn::BitCast(d, hn::Set(w, quiet_nan_bits)),
                          float_of_word(hn::Or(word_of_float(positive), sign)));
  }
};

#if HWY_TARGET == HWY_SCALAR

struct Narrow {
  HWY_INLINE void store(W a, W b, W c, W d, std::uint8_t* to) const {
    to[0] = static_cast<std::uint8_t>(hn::GetLane(a));
    to[1] = static_cast<std::uint8_t>(hn::GetLane(b));
    to[2] = static_cast<std::uint8_t>(hn::GetLane(c));
    to[3] = static_cast<std::uint8_t>(hn::GetLane(d));
  }
};

inline void pack_codes(const std::uint8_t* HWY_RESTRICT codes, std::size_t count,
                       std::uint8_t* HWY_RESTRICT to) {
  for (std::size_t i = 0; i < count; i += 2) to[i / 2] = pack_halves(codes[i], codes[i + 1]);
}

inline void unpack_codes(const std::uint8_t* HWY_RESTRICT packed, std::size_t count,
                         std::uint8_t* HWY_RESTRICT to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = unpack_half(packed[i / 2], i % 2 != 0);
}

inline void pack_fours(const std::uint8_t* HWY_RESTRICT codes, std::size_t count,
                       std::uint8_t* HWY_RESTRICT to) {
  for (std::size_t i = 0; i < count; i += 4)
    to[i / 4] = pack_quarters(codes[i], codes[i + 1], codes[i + 2], codes[i + 3]);
}

inline void unpack_fours(const std::uint8_t* HWY_RESTRICT packed, std::size_t count,
                         std::uint8_t* HWY_RESTRICT to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = unpack_quarter(packed[i / 4], i % 4);
}

#else

/// Where the words of Narrow come from.
constexpr auto narrowing_order() {
  constexpr std::size_t lanes = hn::MaxLanes(Words());
  std::array<std::int32_t, lanes> from{};
  for (std::size_t i = 0; i < lanes; ++i)
    from[i] = static_cast<std::int32_t>(i % (lanes / 4) * 4 + i / (lanes / 4));
  return from;
}

alignas(64) inline constexpr auto narrowing = narrowing_order();

/// Brings the codes of four vectors into one of bytes, in their order: packed into words, where byte i of
/// word j is lane j of vector i; then a transposition within 16 bytes, and one of words.
class Narrow {
 public:
  HWY_INLINE Narrow() : order_(hn::IndicesFromVec(Signed(), hn::Load(Signed(), narrowing.data()))) {}

  HWY_INLINE void store(W a, W b, W c, W d, std::uint8_t* to) const {
    const hn::Repartition<std::uint8_t, Words> bytes;
    alignas(16) static constexpr std::uint8_t transposed[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                                2, 6, 10, 14, 3, 7, 11, 15};
    const W words =
        hn::Or(hn::Or(a, hn::ShiftLeft<8>(b)), hn::Or(hn::ShiftLeft<16>(c), hn::ShiftLeft<24>(d)));
    const auto blocks = hn::TableLookupBytes(hn::BitCast(bytes, words), hn::LoadDup128(bytes, transposed));
    const auto ordered = hn::TableLookupLanes(hn::BitCast(Signed(), blocks), order_);
    hn::StoreU(hn::BitCast(bytes, ordered), bytes, to);
  }

 private:
  decltype(hn::IndicesFromVec(Signed(), hn::Vec<Signed>())) order_;
};

/// Two codes to a byte, for a count that is a multiple of 64.
inline HWY_ATTR void pack_codes(const std::uint8_t* HWY_RESTRICT codes, std::size_t count,
                                std::uint8_t* HWY_RESTRICT to) {
  const hn::ScalableTag<std::uint16_t> pairs;
  const hn::Rebind<std::uint8_t, decltype(pairs)> bytes;
  const hn::Repartition<std::uint8_t, decltype(pairs)> whole;
  const hn::RebindToSigned<decltype(pairs)> narrowed;
  const std::size_t step = 2 * hn::Lanes(pairs);
  for (std::size_t i = 0; i < count; i += step) {
    const auto two = hn::BitCast(pairs, hn::LoadU(whole, codes + i));
    const auto low = hn::And(two, hn::Set(pairs, 0x000FU));
    const auto high = hn::And(hn::ShiftRight<4>(two), hn::Set(pairs, 0x00F0U));
    hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(narrowed, hn::Or(low, high))), bytes, to + i / 2);
  }
}

/// The way back.
inline HWY_ATTR void unpack_codes(const std::uint8_t* HWY_RESTRICT packed, std::size_t count,
                                  std::uint8_t* HWY_RESTRICT to) {
  const hn::ScalableTag<std::uint16_t> pairs;
  const hn::Rebind<std::uint8_t, decltype(pairs)> bytes;
  const hn::Repartition<std::uint8_t, decltype(pairs)> whole;
  const std::size_t step = 2 * hn::Lanes(pairs);
  const auto eight = hn::Set(whole, std::uint8_t{8});
  for (std::size_t i = 0; i < count; i += step) {
    const auto two = hn::PromoteTo(pairs, hn::LoadU(bytes, packed + i / 2));
    const auto halves = hn::And(hn::Or(two, hn::ShiftLeft<4>(two)), hn::Set(pairs, 0x0F0FU));
    hn::StoreU(hn::Sub(hn::Xor(hn::BitCast(whole, halves), eight), eight), whole, to + i);
  }
}

/// Four codes to a byte, for a count that is a multiple of 64.
inline HWY_ATTR void pack_fours(const std::uint8_t* HWY_RESTRICT codes, std::size_t count,
                                std::uint8_t* HWY_RESTRICT to) {
  const Words words;
  const hn::Rebind<std::uint8_t, Words> bytes;
  const hn::Repartition<std::uint8_t, Words> whole;
  const std::size_t step = 4 * hn::Lanes(words);
  for (std::size_t i = 0; i < count; i += step) {
    const W four = hn::And(hn::BitCast(words, hn::LoadU(whole, codes + i)), hn::Set(words, 0x03030303U));
    // Its four fields end up side by side in the highest byte; none of the sums carries.
    const W packed = hn::ShiftRight<24>(hn::Mul(four, hn::Set(words, 0x01041040U)));
    hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(Signed(), packed)), bytes, to + i / 4);
  }
}

/// The way back.
inline HWY_ATTR void unpack_fours(const std::uint8_t* HWY_RESTRICT packed, std::size_t count,
                                  std::uint8_t* HWY_RESTRICT to) {
  const Words words;
  const hn::Rebind<std::uint8_t, Words> bytes;
  const hn::Repartition<std::uint8_t, Words> whole;
  const std::size_t step = 4 * hn::Lanes(words);
  const auto two = hn::Set(whole, std::uint8_t{2});
  for (std::size_t i = 0; i < count; i += step) {
    const W four = hn::PromoteTo(words, hn::LoadU(bytes, packed + i / 4));
    const W spread = hn::Or(hn::Or(four, hn::ShiftLeft<6>(four)),
                            hn::Or(hn::ShiftLeft<12>(four), hn::ShiftLeft<18>(four)));
    const auto quarters = hn::BitCast(whole, hn::And(spread, hn::Set(words, 0x03030303U)));
    hn::StoreU(hn::Sub(hn::Xor(quarters, two), two), whole, to + i);
  }
}

#endif

}  // namespace tutti::compress::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
