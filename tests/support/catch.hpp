#pragma once

// Catch2 2 and 3 under one name; stay within what both have.
#ifdef TUTTI_CATCH3
#include <catch2/catch_all.hpp>
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
using Catch::Matchers::Contains;

inline auto ContainsSubstring(const std::string& text) {
  return Contains(text);
}
#endif

#ifdef TUTTI_CATCH3
using Catch::Approx;
#endif
