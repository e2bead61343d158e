#include <cstdint>
#include <vector>

#include "kernel/kernel.hpp"
#include "support/catch.hpp"

using namespace tutti;

TEST_CASE("streaming copies any number of bytes between any places, and no others") {
  std::vector<std::uint8_t> from(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 7 + 1);
  for (const auto target : kernel::simd_targets()) {
    kernel::force_simd_target(target);
    for (std::size_t bytes = 0; bytes < 300; bytes += bytes < 140 ? 1 : 13) {
      for (const std::size_t shift : {0UL, 1UL, 31UL, 63UL, 64UL}) {
        std::vector<std::uint8_t> to(600, 0xee);
        kernel::stream(to.data() + shift, from.data() + shift % 5, bytes);
        kernel::flush_stream();
        bool good = true;
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= shift && i < shift + bytes;
          good = good && to[i] == (inside ? from[i - shift + shift % 5] : 0xee);
        }
        CHECK(good);
      }
    }
  }
  kernel::force_simd_target("");
}
