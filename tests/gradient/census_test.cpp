#include "gradient/census.hpp"

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/reducer.hpp"

using namespace tutti;

namespace {

constexpr std::size_t elements = 700;

float value(std::size_t parameter, std::size_t element, Rank rank, int step) {
  return static_cast<float>(1 + rank) * 0.37F + static_cast<float>(element % 13) * 0.11F +
         static_cast<float>(step * 5 + static_cast<int>(parameter));
}

void compute(Reducer& reducer, Rank rank, int step) {
  for (std::size_t parameter = 3; parameter-- > 0;) {
    const auto view = reducer.gradient(parameter);
    for (std::size_t i = 0; i < view.size(); ++i) view[i] = value(parameter, i, rank, step);
    reducer.ready(parameter);
  }
}

std::vector<Reducer::Parameter> parameters() {
  return {
      {.name = "a", .count = elements}, {.name = "b", .count = elements}, {.name = "c", .count = elements}};
}

/// Every result that a rank sees when it has `steps` steps of its own in each of two epochs.
std::vector<std::vector<float>> results_of(Communicator& world, const ReducerOptions& options, int steps,
                                           std::vector<Rank>* live = nullptr) {
  Reducer reducer(world, parameters(), options);
  std::vector<std::vector<float>> results;
  const auto apply = [&] {
    results.emplace_back(reducer.buffer().begin(), reducer.buffer().end());
    if (live != nullptr) live->push_back(reducer.live());
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int step = 0; step < steps; ++step) {
      compute(reducer, world.rank(), step);
      reducer.finish();
      apply();
    }
    while (options.join && reducer.join()) apply();
  }
  return results;
}

const std::vector<int> steps_of_ranks{5, 5, 4, 0};

ReducerOptions joining(std::string codec = {}) {
  ReducerOptions options;
  options.join = true;
  options.bucket_bytes = options.first_bucket_bytes = 4 * elements;
  options.codec = std::move(codec);
  return options;
}

}  // namespace

TEST_CASE("ranks with 5, 5, 4 and 0 steps: all see all steps, averages are over those that have data") {
  for (const bool shared : {false, true}) {
    for (const Op op : {Op::average, Op::sum}) {
      engine::LocalOptions way;
      way.shared_memory = shared;
      engine::run_local(4, way, [&](Communicator& world) {
        ReducerOptions options = joining();
        options.op = op;
        std::vector<Rank> live;
        const auto results =
            results_of(world, options, steps_of_ranks[static_cast<std::size_t>(world.rank())], &live);
        base::require(live == std::vector<Rank>{3, 3, 3, 3, 2, 3, 3, 3, 3, 2}, "live ranks");
        for (std::size_t s = 0; s < results.size(); ++s) {
          const int step = static_cast<int>(s % 5);
          for (const std::size_t i : {std::size_t{0}, elements - 1}) {
            double sum = 0;
            for (Rank r = 0; r < 3; ++r) {
              if (step < steps_of_ranks[static_cast<std::size_t>(r)]) sum += value(0, i, r, step);
            }
            const double expected = op == Op::sum ? sum : sum / live[s];
            base::require(std::abs(results[s][i] - expected) < 1e-5 * std::abs(expected),
                          "step {}: {} is not {}", s, results[s][i], expected);
          }
        }
      });
    }
  }
}

TEST_CASE("with codecs, too, all ranks have the same results, and they are averages of live ranks") {
  for (const std::string codec : {"bf16", "int8", "int8:feedback=on", "topk:density=1", "powersgd:rank=2"}) {
    std::mutex mutex;
    std::map<Rank, std::vector<std::vector<float>>> all;
    engine::run_local(4, {}, [&](Communicator& world) {
      auto results =
          results_of(world, joining(codec), steps_of_ranks[static_cast<std::size_t>(world.rank())]);
      const std::scoped_lock lock(mutex);
      all[world.rank()] = std::move(results);
    });
    INFO(codec);
    for (Rank r = 1; r < 4; ++r) CHECK(all[r] == all[0]);
    const float expected = (value(0, 3, 0, 4) + value(0, 3, 1, 4)) / 2;
    if (codec != "powersgd:rank=2") CHECK(all[0][4][3] == Approx(expected).epsilon(0.02));
  }
}

TEST_CASE("while all ranks have data, the bits are those without join") {
  for (const std::string codec : {"", "bf16", "int8", "int4", "topk", "dgc"}) {
    engine::run_local(3, {}, [&](Communicator& world) {
      ReducerOptions plain = joining(codec);
      plain.join = false;
      base::require(results_of(world, joining(codec), 3) == results_of(world, plain, 3), "{}", codec);
    });
  }
}

TEST_CASE("a rank without data lacks no gradient, and skip knows that it had none") {
  engine::run_local(2, {}, [](Communicator& world) {
    for (const Missing missing : {Missing::error, Missing::skip}) {
      ReducerOptions options = joining();
      options.missing = missing;
      Reducer reducer(world, parameters(), options);
      if (world.rank() == 0) {
        for (const std::size_t parameter : {2U, 1U, 0U}) {
          if (missing == Missing::error || parameter != 1) reducer.ready(parameter);
        }
        reducer.finish();
      } else {
        base::require(reducer.join(), "there is data on rank 0");
      }
      base::require(reducer.got_gradient(1) == (missing == Missing::error), "gradient of b");
      base::require(!reducer.join(), "no rank has data");
    }
  });
}

TEST_CASE("join is refused where it was not asked for, and in the middle of a step") {
  engine::run_local(1, {}, [](Communicator& world) {
    Reducer plain(world, parameters());
    CHECK_THROWS_AS(plain.join(), InvalidArgument);
    CHECK(plain.live() == 1);
    Reducer reducer(world, parameters(), joining());
    reducer.ready(0);
    CHECK_THROWS_AS(reducer.join(), InvalidArgument);
    reducer.finish();
    CHECK(reducer.live() == 1);
    CHECK_FALSE(reducer.join());
  });
}
