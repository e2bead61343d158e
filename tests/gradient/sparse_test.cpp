#include "gradient/sparse.hpp"

#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/reducer.hpp"

using namespace tutti;

namespace {

constexpr std::size_t rows = 300;
constexpr std::size_t width = 7;

struct Touched {
  std::vector<std::uint32_t> rows;
  std::vector<float> values;
};

/// Rows with repetitions, in no order; one rank has none.
Touched touched(Rank rank, int step, double density) {
  base::Random random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
  Touched result;
  if (rank == 2) return result;
  const auto count = static_cast<std::size_t>(density * rows) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    result.rows.push_back(static_cast<std::uint32_t>(random.below(rows)));
    if (density >= 1) result.rows.back() = static_cast<std::uint32_t>(i % rows);
    for (std::size_t c = 0; c < width; ++c) result.values.push_back(static_cast<float>(random.normal()));
  }
  return result;
}

/// In fp32, in the order of the rows.
std::vector<float> densified(const Touched& touched) {
  std::vector<float> dense(rows * width);
  for (std::size_t i = 0; i < touched.rows.size(); ++i) {
    for (std::size_t c = 0; c < width; ++c)
      dense[touched.rows[i] * width + c] += touched.values[i * width + c];
  }
  return dense;
}

std::vector<float> densified(const SparseRows& sparse) {
  std::vector<float> dense(rows * width);
  for (std::size_t i = 0; i < sparse.rows.size(); ++i) {
    base::require(i == 0 || sparse.rows[i - 1] < sparse.rows[i], "rows are not ascending");
    std::copy_n(sparse.values.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                dense.begin() + static_cast<std::ptrdiff_t>(sparse.rows[i] * width));
  }
  return dense;
}

std::vector<std::uint32_t> all_rows_of(Rank ranks, int step, double density) {
  std::set<std::uint32_t> all;
  for (Rank r = 0; r < ranks; ++r) {
    const auto mine = touched(r, step, density).rows;
    all.insert(mine.begin(), mine.end());
  }
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("sparse gradients: the bits of a dense allreduce, at every density, way and rank count") {
  for (const Rank ranks : {1, 2, 3, 5, 8}) {
    for (const bool shared : {false, true}) {
      for (const Op op : {Op::average, Op::sum}) {
        engine::LocalOptions way;
        way.shared_memory = shared;
        engine::run_local(ranks, way, [&](Communicator& world) {
          ReducerOptions options;
          options.op = op;
          options.codec = "bf16";  // never for sparse ones
          Reducer reducer(world,
                          {{.name = "before", .count = 40},
                           {.name = "embedding", .count = rows * width, .rows = rows, .sparse = true},
                           {.name = "after", .count = 50}},
                          options);
          int step = 0;
          for (const double density : {0.001, 0.01, 0.3, 1.0, 1.0, 1.0, 0.01, 0.01, 0.0}) {
            const Touched mine = touched(world.rank(), ++step, density);
            auto dense = densified(mine);
            world.allreduce(std::span(dense), op);
            const std::size_t half = mine.rows.size() / 2;
            const auto all = std::span(mine.rows);
            const auto values = std::span(mine.values);
            reducer.add_rows(1, all.first(half), values.first(half * width));
            // Neighbours are ready before and after it, on every rank in another order.
            if ((step + world.rank()) % 2 == 0) reducer.ready(2);
            reducer.add_rows(1, all.subspan(half), values.subspan(half * width));
            reducer.ready(1);
            if ((step + world.rank()) % 2 != 0) reducer.ready(2);
            reducer.ready(0);
            reducer.finish();
            base::require(densified(reducer.rows(1)) == dense, "step {}: not the dense sums", step);
            const auto got = reducer.rows(1).rows;
            base::require(std::ranges::equal(got, all_rows_of(ranks, step, density)), "step {}: other rows",
                          step);
          }
        });
      }
    }
  }
}

TEST_CASE("dense while the ranks' rows are more than twice the matrix, and back") {
  engine::run_local(4, {}, [](Communicator& world) {
    gradient::SparseGradient sparse("embedding", rows, width);
    int step = 0;
    std::vector<bool> dense;
    for (const double density : {0.1, 1.0, 1.0, 0.1, 0.1, 0.1}) {
      const Touched mine = touched(world.rank(), ++step, density);
      sparse.add(mine.rows, mine.values);
      sparse.start(world, Op::average).wait();
      sparse.finish();
      dense.push_back(sparse.dense());
    }
    base::require(dense == std::vector<bool>{false, true, true, false, false, false}, "other choices");
  });
}

TEST_CASE("sparse gradients: what was added and is not ready is left out, and bad rows are refused") {
  engine::run_local(2, {}, [](Communicator& world) {
    Reducer reducer(world, {{.name = "embedding", .count = rows * width, .rows = rows, .sparse = true}});
    const std::vector<std::uint32_t> row{5};
    const std::vector<float> values(width, 1.0F);
    reducer.add_rows(0, row, values);
    if (world.rank() == 0) reducer.ready(0);
    reducer.finish();
    base::require(reducer.rows(0).rows.size() == 1 && reducer.rows(0).values[0] == 0.5F, "one rank's row");
    reducer.ready(0);
    reducer.finish();
    base::require(reducer.rows(0).rows.empty(), "rows of the step before");
  });
  engine::run_local(1, {}, [](Communicator& world) {
    Reducer reducer(world, {{.name = "embedding", .count = rows * width, .rows = rows, .sparse = true},
                            {.name = "dense", .count = 3}});
    const std::vector<float> values(width);
    CHECK_THROWS_WITH(reducer.add_rows(0, std::vector<std::uint32_t>{300}, values),
                      Catch::Contains("row 300 of a matrix of 300 rows"));
    CHECK_THROWS_WITH(reducer.add_rows(0, std::vector<std::uint32_t>{3, 4}, values),
                      Catch::Contains("7 values for 2 rows, expected 7 for each"));
    CHECK_THROWS_WITH(reducer.add_rows(1, std::vector<std::uint32_t>{0}, values),
                      Catch::Contains("'dense' is not registered as sparse"));
    CHECK_THROWS_WITH(reducer.gradient(0), Catch::Contains("is sparse: there is no view of it"));
    CHECK_THROWS_AS(Reducer(world, {{.name = "no rows", .count = 3, .sparse = true}}), InvalidArgument);
    reducer.ready(0);
    CHECK_THROWS_AS(reducer.add_rows(0, std::vector<std::uint32_t>{0}, values), InvalidArgument);
  });
}
