#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace tutti::base {

/// Mixes 64 bits so that each input bit changes half of the output bits (the finalizer of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Seeded generator xoshiro256** 1.0 (Blackman, Vigna 2018): the same numbers on every machine and library.
/// Satisfies UniformRandomBitGenerator; do not feed it to std:: distributions where results must be portable,
/// these differ between libraries: use below(), unit() and normal().
class Random {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0) noexcept {
    std::uint64_t s = mix(seed) ^ mix(stream * 0x632be59bd9b4e019ULL + 1);
    for (auto& word : state_) word = s = mix(s);
  }

  static constexpr result_type min() noexcept { return 0; }

  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

  constexpr result_type operator()() noexcept {
    const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, bound); 0 for bound 0. Unbiased (Lemire 2019, multiply and reject).
  std::uint64_t below(std::uint64_t bound) noexcept;

  /// Uniform in [0, 1) with 53 bits.
  double unit() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  /// Standard normal (Box-Muller, both values used in turn). Computed in double.
  double normal() noexcept;

 private:
  static constexpr std::uint64_t rotl(std::uint64_t x, int k) noexcept { return (x << k) | (x >> (64 - k)); }

  std::array<std::uint64_t, 4> state_{};
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace tutti::base
