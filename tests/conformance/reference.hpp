#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/cases.hpp"

namespace tutti::conformance {

/// What rank `rank` puts in: `count` elements of test.type. For all of a rank's blocks where a collective has
/// several.
std::vector<std::byte> contribution(const Case& test, Rank rank, std::size_t count);

/// The reduction of all ranks' contributions in canonical order, element by element.
std::vector<std::byte> reduced(const Case& test, Rank ranks, std::size_t count);

/// Largest distance between two arrays of test.type, in units of what reordering the additions may change: at
/// most 1 is right. The arrays hold elements [first, first + count) of the reduction.
double order_error(const Case& test, Rank ranks, std::size_t first, std::size_t count, const std::byte* found,
                   const std::byte* expected);

/// counts[r] of a case with uneven blocks (some of them 0).
std::vector<std::size_t> uneven_counts(const Case& test, Rank ranks);

}  // namespace tutti::conformance
