// Philox for the loops of codecs. Compiled once for each instruction set.
#if defined(TUTTI_COMPRESS_PHILOX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_COMPRESS_PHILOX_INL
#undef TUTTI_COMPRESS_PHILOX_INL
#else
#define TUTTI_COMPRESS_PHILOX_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "compress/arithmetic/philox.hpp"

HWY_BEFORE_NAMESPACE();

namespace tutti::compress::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// How far fill_draws() may write past what was asked.
inline constexpr std::size_t draws_slack = 64;

#if HWY_TARGET == HWY_SCALAR

/// to[i] = the draw of element 4·group + i, for i < count; up to draws_slack more are written.
inline void fill_draws(const Draws& draws, std::uint64_t group, std::size_t count,
                       std::uint32_t* HWY_RESTRICT to) {
  for (std::size_t done = 0; done < count; done += 4) {
    const auto four = draws.group(group + done / 4);
    std::copy(four.begin(), four.end(), to + done);
  }
}

#else

/// Lane 2j counts group first + j, lane 2j+1 group first + lanes/2 + j: interleaving then puts all in order.
/// (Vectors are as long as their type says: targets.hpp leaves out those that are not.)
constexpr auto counting_order() {
  std::array<std::uint64_t, hn::MaxLanes(hn::ScalableTag<std::uint64_t>())> groups{};
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = i / 2 + (i % 2) * (groups.size() / 2);
  return groups;
}

alignas(64) inline constexpr auto counting = counting_order();

/// Counters of as many groups as a vector has 64-bit lanes, one word in the lower half of each lane, as the
/// multiplication wants them. The upper halves hold rubbish that nothing reads.
class Counters {
 public:
  using Wide = hn::ScalableTag<std::uint64_t>;
  using Word = hn::Repartition<std::uint32_t, Wide>;

  HWY_INLINE Counters(const Draws& draws, std::uint64_t first) {
    const Wide wide;
    a_ = hn::Add(hn::Load(wide, counting.data()), hn::Set(wide, first));
    b_ = hn::ShiftRight<32>(a_);
    c_ = hn::Set(wide, draws.counter(0)[2]);
    d_ = hn::Set(wide, draws.counter(0)[3]);
  }

  template <class V>
  HWY_INLINE void round(V first_key, V second_key) {
    const Wide wide;
    const Word word;
    const auto low = hn::MulEven(hn::BitCast(word, a_), hn::Set(word, 0xD2511F53U));
    const auto high = hn::MulEven(hn::BitCast(word, c_), hn::Set(word, 0xCD9E8D57U));
    a_ = hn::Xor(hn::ShiftRight<32>(high), hn::Xor(b_, hn::BitCast(wide, first_key)));
    c_ = hn::Xor(hn::ShiftRight<32>(low), hn::Xor(d_, hn::BitCast(wide, second_key)));
    b_ = high;
    d_ = low;
  }

  /// The draws of all groups, in order: two vectors.
  HWY_INLINE void store(std::uint32_t* to) const {
    const Wide wide;
    const Word word;
    const auto pair = [&](auto first, auto second) HWY_ATTR {
      return hn::BitCast(wide,
                         hn::OddEven(hn::BitCast(word, hn::ShiftLeft<32>(second)), hn::BitCast(word, first)));
    };
    const auto ab = pair(a_, b_);
    const auto cd = pair(c_, d_);
    hn::StoreU(hn::BitCast(word, hn::InterleaveLower(wide, ab, cd)), word, to);
    hn::StoreU(hn::BitCast(word, hn::InterleaveUpper(wide, ab, cd)), word, to + hn::Lanes(word));
  }

 private:
  hn::Vec<Wide> a_;
  hn::Vec<Wide> b_;
  hn::Vec<Wide> c_;
  hn::Vec<Wide> d_;
};

/// The same.
inline HWY_ATTR void fill_draws(const Draws& draws, std::uint64_t group, std::size_t count,
                                std::uint32_t* HWY_RESTRICT to) {
  const Counters::Word word;
  const std::size_t lanes = hn::Lanes(Counters::Wide());
  static_assert(8 * hn::MaxLanes(Counters::Wide()) <= draws_slack);
  const std::array<std::uint32_t, 2> key = draws.key();
  for (std::size_t done = 0; done < count; done += 8 * lanes) {
    // Two at a time: the rounds of one are a chain of multiplications that would leave the units idle.
    const std::uint64_t at = group + done / 4;
    Counters one(draws, at);
    Counters two(draws, at + lanes);
    auto first_key = hn::Set(word, key[0]);
    auto second_key = hn::Set(word, key[1]);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      one.round(first_key, second_key);
      two.round(first_key, second_key);
      first_key = hn::Add(first_key, hn::Set(word, 0x9E3779B9U));
      second_key = hn::Add(second_key, hn::Set(word, 0xBB67AE85U));
    }
    one.store(to + done);
    two.store(to + done + 4 * lanes);
  }
}

#endif

}  // namespace tutti::compress::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
