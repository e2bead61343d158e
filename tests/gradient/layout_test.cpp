#include "gradient/layout.hpp"

#include <cstdint>
#include <vector>

#include "support/catch.hpp"

using namespace tutti::gradient;

namespace {

const std::vector<Kind> none(8, Kind::encoded);

}  // namespace

TEST_CASE("parameters lie in reverse of the order in which they are ready, buckets are runs") {
  const std::vector<std::size_t> counts{10, 20, 30, 40};
  const std::vector<std::uint32_t> order{3, 2, 1, 0};
  const Layout layout = lay_out(counts, none, order, 4 * 30, 4 * 55);
  CHECK(layout.size == 100);
  CHECK(layout.offsets == std::vector<std::size_t>{0, 10, 30, 60});
  REQUIRE(layout.buckets.size() == 2);
  CHECK(layout.buckets[0].first == 60);
  CHECK(layout.buckets[0].count == 40);
  CHECK(layout.buckets[1].first == 0);
  CHECK(layout.buckets[1].count == 60);
  CHECK(layout.buckets[1].parameters == 3);
  CHECK(layout.bucket_of == std::vector<std::size_t>{1, 1, 1, 0});
}

TEST_CASE("another order, tiny and huge buckets, parameters of nothing") {
  const std::vector<std::size_t> counts{5, 0, 7};
  const std::vector<std::uint32_t> order{1, 0, 2};
  const Layout each = lay_out(counts, none, order, 0, 0);
  CHECK(each.buckets.size() == 3);
  CHECK(each.offsets == std::vector<std::size_t>{7, 12, 0});
  const Layout one = lay_out(counts, none, order, 1 << 20, 1 << 20);
  CHECK(one.buckets.size() == 1);
  CHECK(one.buckets[0].count == 12);
  std::size_t covered = 0;
  for (const Bucket& bucket : each.buckets) covered += bucket.count;
  CHECK(covered == 12);
}

TEST_CASE("exact parameters have buckets of their own") {
  const std::vector<std::size_t> counts{5, 6, 7, 8};
  const std::vector<Kind> kinds{Kind::encoded, Kind::exact, Kind::exact, Kind::encoded};
  const std::vector<std::uint32_t> order{3, 2, 1, 0};
  const Layout layout = lay_out(counts, kinds, order, 1 << 20, 1 << 20);
  REQUIRE(layout.buckets.size() == 3);
  CHECK(layout.buckets[0].kind == Kind::encoded);
  CHECK(layout.buckets[1].kind == Kind::exact);
  CHECK(layout.buckets[1].count == 13);
  CHECK(layout.buckets[2].kind == Kind::encoded);
}

TEST_CASE("sparse parameters have each a bucket of its own, and no place in the buffer") {
  const std::vector<std::size_t> counts{5, 0, 0, 8};
  const std::vector<Kind> kinds{Kind::exact, Kind::sparse, Kind::sparse, Kind::exact};
  const std::vector<std::uint32_t> order{3, 2, 1, 0};
  const Layout layout = lay_out(counts, kinds, order, 1 << 20, 1 << 20);
  CHECK(layout.bucket_of == std::vector<std::size_t>{3, 2, 1, 0});
  CHECK(layout.size == 13);
  CHECK(layout.offsets[0] == 0);
  CHECK(layout.offsets[3] == 5);
}
