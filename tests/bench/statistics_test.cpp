#include "bench/statistics.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace tutti::bench;

TEST_CASE("percentiles lie between samples in proportion") {
  const std::vector<double> sorted{1, 2, 3, 4, 5};
  CHECK(percentile(sorted, 0) == 1);
  CHECK(percentile(sorted, 1) == 5);
  CHECK(percentile(sorted, 0.5) == 3);
  CHECK(percentile(sorted, 0.625) == 3.5);
  CHECK(percentile({}, 0.5) == 0);
}

TEST_CASE("a spread does not mind the order of samples, and tells how wide it is") {
  const Spread spread = spread_of({9, 1, 5, 3, 7});
  CHECK(spread.median == 5);
  CHECK(spread.p25 == 3);
  CHECK(spread.p75 == 7);
  CHECK(spread.width() == 0.8);
}

TEST_CASE("geometric means") {
  CHECK(geometric_mean(std::vector<double>{2, 8}) == Approx(4));
  CHECK(geometric_mean({}) == 1);
}
