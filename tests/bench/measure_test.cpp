#include "bench/measure.hpp"

#include <atomic>
#include <vector>

#include "base/error.hpp"
#include "bench/bound.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::bench;
using schedule::Collective;

TEST_CASE("every collective is measured, with right results, in both kinds of memory and both modes") {
  for (const auto collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather,
                                Collective::broadcast, Collective::reduce}) {
    for (const auto memory : {Memory::user, Memory::arena}) {
      for (const auto mode : {Mode::fresh, Mode::batch}) {
        engine::run_local(3, {.shared_memory = true}, [&](Communicator& world) {
          const base::SteadyClock clock;
          Options options{.collective = collective, .begin = 64, .end = 65536, .factor = 8, .iterations = 3};
          options.memory = memory;
          options.mode = mode;
          options.root = 1;
          std::size_t seen = 0;
          const auto rows = measure(world, nullptr, clock, options, [&](const Row&) { ++seen; });
          base::require(seen == 4 && rows.size() == 4, "{} rows", seen);
          for (const Row& row : rows) {
            base::require(row.out_of_place.wrong == 0 && (!row.in_place || row.in_place->wrong == 0),
                          "wrong values");
            base::require(row.out_of_place.spread.median > 0, "no time");
          }
        });
      }
    }
  }
}

TEST_CASE("the bus factor is the share that a link must carry") {
  CHECK(bus_factor(Collective::allreduce, 4) == 1.5);
  CHECK(bus_factor(Collective::allgather, 4) == 0.75);
  CHECK(bus_factor(Collective::reduce_scatter, 2) == 0.5);
  CHECK(bus_factor(Collective::broadcast, 7) == 1);
}

TEST_CASE("options that cannot be met are errors") {
  engine::run_local(1, {}, [](Communicator& world) {
    const base::SteadyClock clock;
    const auto rejected = [&](const Options& options) {
      try {
        measure(world, nullptr, clock, options, [](const Row&) {});
      } catch (const InvalidArgument&) {
        return true;
      }
      return false;
    };
    base::require(rejected({.begin = 100, .end = 10}), "a range that is empty");
    base::require(rejected({.factor = 1}), "a factor of 1");
    base::require(rejected({.begin = 0}), "a size of 0");
  });
}

TEST_CASE("what memory allows is measured where ranks share it, and refused elsewhere") {
  engine::run_local(2, {.shared_memory = true}, [](Communicator& world) {
    const base::SteadyClock clock;
    Bound bound(world, clock, 1 << 20);
    const double small = bound.seconds(4096, 5);
    const double large = bound.seconds(1 << 20, 5);
    base::require(small > 0 && large > small, "{} and {} s", small, large);
    base::require(bound.flags(3) > 0, "no time of flags");
  });
  engine::run_local(2, {}, [](Communicator& world) {
    const base::SteadyClock clock;
    bool thrown = false;
    try {
      const Bound bound(world, clock, 4096);
    } catch (const InvalidArgument&) {
      thrown = true;
    }
    base::require(thrown, "no error");
  });
}
