#include "engine/geometry.hpp"

#include <vector>

#include "base/random.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::engine;
using schedule::Block;
using schedule::Collective;

TEST_CASE("segments and blocks of a buffer cover it exactly once, in order") {
  base::Random random(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = random.below(5000);
    const auto blocks = static_cast<std::uint32_t>(1 + random.below(17));
    const Request request{.collective = Collective::allreduce, .count = count, .type = DType::f32};
    const Geometry geometry(request, 4, 1, blocks, 1 + random.below(9000));
    std::size_t next = 0;
    for (std::uint32_t s = 0; s < geometry.segments(); ++s) {
      for (std::uint32_t b = 0; b < blocks; ++b) {
        const Range range = geometry.in_input(s, {b, b + 1});
        if (range.count > 0) CHECK(range.offset == next);
        next += range.count;
        CHECK(range.count <= geometry.most_elements({b, b + 1}));
      }
      const Range all = geometry.in_segment(s, {0, blocks});
      CHECK(all.offset == 0);
      CHECK(all.count <= geometry.segment_elements());
    }
    CHECK(next == count);
  }
}

TEST_CASE("blocks of ranks keep their length and place, uneven ones too") {
  base::Random random(2);
  for (int round = 0; round < 300; ++round) {
    const auto ranks = static_cast<Rank>(1 + random.below(8));
    std::vector<std::size_t> counts;
    std::vector<std::size_t> starts{0};
    for (Rank r = 0; r < ranks; ++r) {
      counts.push_back(random.below(1000));
      starts.push_back(starts.back() + counts.back());
    }
    const auto own = static_cast<Rank>(random.below(static_cast<std::uint64_t>(ranks)));
    const Request request{
        .collective = Collective::allgather, .count = starts.back(), .type = DType::u8, .counts = counts};
    const Geometry geometry(request, ranks, own, static_cast<std::uint32_t>(ranks), 1 + random.below(700));
    std::vector<std::size_t> seen(counts.size(), 0);
    for (std::uint32_t s = 0; s < geometry.segments(); ++s) {
      for (std::uint32_t b = 0; b < counts.size(); ++b) {
        const Range range = geometry.in_output(s, {b, b + 1});
        if (range.count > 0) CHECK(range.offset == starts[b] + seen[b]);
        seen[b] += range.count;
      }
    }
    CHECK(seen == counts);
  }
}

TEST_CASE("scratch for a run of blocks is enough in every segment, the shorter last one included") {
  for (const std::size_t count : {1UL, 5UL, 16UL, 17UL, 1023UL, 16384UL, 16390UL, 40000UL}) {
    for (const std::uint32_t blocks : {1U, 3U, 7U, 16U}) {
      const Request request{.collective = Collective::allreduce, .count = count, .type = DType::f32};
      const Geometry geometry(request, 16, 0, blocks, 65536);
      for (std::uint32_t first = 0; first < blocks; ++first) {
        for (std::uint32_t last = first + 1; last <= blocks; ++last) {
          for (std::uint32_t s = 0; s < geometry.segments(); ++s) {
            CHECK(geometry.in_segment(s, {first, last}).count <= geometry.most_elements({first, last}));
          }
        }
      }
    }
  }
}
