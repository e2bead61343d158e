#include "data/order.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::data;

TEST_CASE("an epoch visits every sample once, whatever the rank count, in the same global order") {
  constexpr std::size_t samples = 103;
  constexpr std::size_t batch = 16;
  std::vector<std::uint32_t> reference;
  for (const Rank ranks : {1, 2, 3, 5, 8, 20}) {
    std::vector<std::uint32_t> seen;
    SampleOrder order(samples, batch, 9);
    for (std::size_t step = 0; step < order.steps_per_epoch(); ++step) {
      for (Rank rank = 0; rank < ranks; ++rank) {
        const auto part = order.local_batch(step, rank, ranks);
        seen.insert(seen.end(), part.begin(), part.end());
      }
    }
    if (reference.empty()) reference = seen;
    CHECK(seen == reference);
  }
  std::sort(reference.begin(), reference.end());
  std::vector<std::uint32_t> all(samples);
  std::iota(all.begin(), all.end(), 0U);
  CHECK(reference == all);
}

TEST_CASE("epochs differ, seeds differ, and any step can be asked for") {
  SampleOrder order(50, 10, 1);
  const auto first = order.global_batch(0);
  const std::vector<std::uint32_t> kept(first.begin(), first.end());
  const auto next_epoch = order.global_batch(5);
  CHECK_FALSE(std::equal(kept.begin(), kept.end(), next_epoch.begin()));
  const auto again = order.global_batch(0);
  CHECK(std::equal(kept.begin(), kept.end(), again.begin()));
  SampleOrder other(50, 10, 2);
  CHECK_FALSE(std::equal(kept.begin(), kept.end(), other.global_batch(0).begin()));
  CHECK(SampleOrder(50, 60, 1).steps_per_epoch() == 1);
}

TEST_CASE("no samples and no batch are refused") {
  CHECK_THROWS_WITH(SampleOrder(0, 8, 1), ContainsSubstring("0 samples"));
  CHECK_THROWS_WITH(SampleOrder(8, 0, 1), ContainsSubstring("global batch is 0"));
}
