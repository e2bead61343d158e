#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compress/arithmetic/select.hpp"

/// The passes of sparse codecs over all elements, for the instruction set in use. Addresses may be any that
/// floats have.
namespace tutti::compress::simd {

/// found = positions of values that pass, in order; returns how many. There is room for `count`.
std::size_t find(const float* values, std::size_t count, Cut cut, std::uint32_t* found);

/// values += in, then find().
std::size_t add_and_find(const float* in, float* values, std::size_t count, Cut cut, std::uint32_t* found);

/// momentum = beta · momentum + scale · in; values += momentum; then find(). Every product and sum is
/// rounded.
struct Momentum {
  float beta = 0;
  float scale = 1;
  float* momentum = nullptr;
};

std::size_t momentum_and_find(const float* in, Momentum momentum, float* values, std::size_t count, Cut cut,
                              std::uint32_t* found);

/// Of magnitudes. The sum of a run is rounded in one way: 16 sums, of every 16th element, added by halves.
struct Extent {
  double sum = 0;
  Key largest = 0;
};

/// values += in, and what it makes is added to `extent`.
void add_and_measure(const float* in, float* values, std::size_t count, Extent& extent);

/// How many values pass at each of eight thresholds, added to `counts`.
inline constexpr std::size_t cuts = 8;
void count_passing(const float* values, std::size_t count, const std::array<Key, cuts>& thresholds, Side side,
                   std::array<std::uint64_t, cuts>& counts);

}  // namespace tutti::compress::simd
