#include "compress/arithmetic/philox.hpp"

#include <array>
#include <cstdint>

#include "support/catch.hpp"

using tutti::compress::Draws;
using tutti::compress::philox;

TEST_CASE("known answers of Random123 for philox4x32-10") {
  using Four = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) == Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("draws differ by element, step, parameter, rank and seed, and in nothing else") {
  const Draws draws{.seed = 1, .step = 2, .parameter = 3, .rank = 4};
  CHECK(draws.of(10) == draws.group(2)[2]);
  CHECK(draws.of(10) != draws.of(11));
  for (const Draws& other : {Draws{2, 2, 3, 4}, Draws{1, 3, 3, 4}, Draws{1, 2, 4, 4}, Draws{1, 2, 3, 5},
                             Draws{1ULL << 40U, 2, 3, 4}, Draws{1, 1ULL << 40U, 3, 4}})
    CHECK(other.of(10) != draws.of(10));
}
