#include "base/random.hpp"

#include <vector>

#include "support/catch.hpp"

using tutti::base::Random;

TEST_CASE("random numbers repeat for a seed and differ between streams") {
  Random a(7);
  Random b(7);
  Random other(7, 1);
  std::vector<std::uint64_t> from_a;
  std::vector<std::uint64_t> from_other;
  for (int i = 0; i < 100; ++i) {
    from_a.push_back(a());
    CHECK(from_a.back() == b());
    from_other.push_back(other());
  }
  CHECK(from_a != from_other);
}

TEST_CASE("numbers of a seed are pinned: shards and initial weights follow from them") {
  Random random(1);
  CHECK(random() == 0x1a70a846bd9cc2a9ULL);
  CHECK(random() == 0x6a0ef250cd2b9e80ULL);
}

TEST_CASE("below is uniform and stays below") {
  Random random(3);
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 70000; ++i) ++seen[static_cast<std::size_t>(random.below(7))];
  for (const int count : seen) {
    CHECK(count > 9600);
    CHECK(count < 10400);
  }
  CHECK(random.below(0) == 0);
  CHECK(random.below(1) == 0);
}

TEST_CASE("normal numbers have mean 0 and variance 1") {
  Random random(5);
  double sum = 0;
  double squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / n) < 0.02);
  CHECK(std::abs(squares / n - 1) < 0.03);
}
