#include "tutti/reducer.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;

namespace {

std::vector<Reducer::Parameter> parameters_of(std::size_t count) {
  std::vector<Reducer::Parameter> parameters;
  for (std::size_t i = 0; i < count; ++i)
    parameters.push_back(
        {.name = "layer" + std::to_string(i), .count = 100 + 980 * (i % 5), .rows = i % 2 == 0 ? 20U : 0U});
  return parameters;
}

float value(std::size_t parameter, std::size_t element, Rank rank, int step) {
  base::Random random(parameter * 1000 + element, static_cast<std::uint64_t>(rank * 100 + step));
  return static_cast<float>(random.normal());
}

void fill(Reducer& reducer, std::size_t parameter, Rank rank, int step) {
  const auto view = reducer.gradient(parameter);
  for (std::size_t i = 0; i < view.size(); ++i) view[i] = value(parameter, i, rank, step);
}

engine::LocalOptions options_of(int way, bool thread) {
  engine::LocalOptions options;
  options.shared_memory = way != 0;
  if (way == 2) options.nodes = {0, 0, 1, 1};
  options.background_thread = thread;
  options.core.timeout = Seconds(60);
  return options;
}

/// Bits of all averages of some steps, by parameter, whatever the order in which gradients become ready.
std::vector<float> averages(Communicator& world, const ReducerOptions& options, int seed) {
  const auto parameters = parameters_of(12);
  Reducer reducer(world, parameters, options);
  std::vector<float> result;
  for (int step = 0; step < 3; ++step) {
    std::vector<std::size_t> order;
    for (std::size_t i = parameters.size(); i-- > 0;) order.push_back(i);
    // Every rank has an order of its own, and not always the same.
    if (seed != 0)
      std::ranges::shuffle(order, std::mt19937(static_cast<unsigned>(seed * 10 + step + world.rank())));
    for (const std::size_t i : order) {
      fill(reducer, i, world.rank(), step);
      reducer.ready(i);
    }
    reducer.finish();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto view = reducer.gradient(i);
      result.insert(result.end(), view.begin(), view.end());
    }
  }
  return result;
}

}  // namespace

TEST_CASE("the same bits for every bucket size, order of readiness, and way") {
  std::mutex mutex;
  std::set<std::vector<float>> results;
  for (const int way : {0, 1, 2}) {
    for (const bool thread : {false, true}) {
      for (const std::size_t bucket : {std::size_t{0}, std::size_t{3000}, std::size_t{1} << 30U}) {
        for (const int seed : {0, 1}) {
          engine::run_local(4, options_of(way, thread), [&](Communicator& world) {
            ReducerOptions options;
            options.bucket_bytes = bucket;
            options.first_bucket_bytes = bucket / 3;
            auto result = averages(world, options, seed);
            const std::scoped_lock lock(mutex);
            results.insert(std::move(result));
          });
        }
      }
    }
  }
  CHECK(results.size() == 1);
}

TEST_CASE("with a codec, too, the bits do not depend on buckets, order and way") {
  for (const std::string codec :
       {"bf16", "int8", "int4", "fp8:rounding=stochastic", "int8:block=64:feedback=on", "topk:density=0.03",
        "topk:density=0.03:reuse=3", "dgc:density=0.03", "randomk:density=0.1", "redsync:density=0.03",
        "blocktopk:density=0.03:block=128", "powersgd:rank=2", "ternary", "ternary:rounding=stochastic",
        "onebit", "qsgd:bits=4", "terngrad", "natural"}) {
    std::mutex mutex;
    std::set<std::vector<float>> results;
    for (const int way : {0, 1, 2}) {
      for (const std::size_t bucket : {std::size_t{0}, std::size_t{3000}, std::size_t{1} << 30U}) {
        for (const int seed : {0, 1}) {
          engine::run_local(4, options_of(way, seed == 1), [&](Communicator& world) {
            ReducerOptions options;
            options.bucket_bytes = bucket;
            options.first_bucket_bytes = bucket / 3;
            options.codec = codec;
            options.seed = 9;
            auto result = averages(world, options, seed);
            const std::scoped_lock lock(mutex);
            results.insert(std::move(result));
          });
        }
      }
    }
    INFO(codec);
    CHECK(results.size() == 1);
  }
}

TEST_CASE("averages and sums are right, and gradients may be added up over several passes") {
  engine::run_local(3, options_of(1, false), [](Communicator& world) {
    for (const Op op : {Op::sum, Op::average}) {
      ReducerOptions options;
      options.op = op;
      options.bucket_bytes = options.first_bucket_bytes = 10;
      Reducer reducer(world, {{"a", 50}, {"b", 3}}, options);
      base::require(reducer.buckets() == 2, "{} buckets", reducer.buckets());
      for (int pass = 0; pass < 2; ++pass) {
        for (const std::size_t i : {0U, 1U}) {
          for (float& x : reducer.gradient(i)) x += static_cast<float>(world.rank() + 1);
        }
      }
      reducer.ready(0);
      reducer.ready(1);
      reducer.finish();
      for (const std::size_t i : {0U, 1U}) {
        for (const float x : reducer.gradient(i))
          base::require(x == (op == Op::sum ? 12.0F : 4.0F), "{} is {}", name_of(op), x);
      }
      base::require(reducer.bucket_times().size() == 2 && reducer.bucket_times()[0].bytes > 0, "no times");
    }
  });
}

TEST_CASE("the order of rank 0's first step is that of all later ones, and values survive the new layout") {
  engine::run_local(2, {}, [](Communicator& world) {
    ReducerOptions options;
    options.bucket_bytes = options.first_bucket_bytes = 40;
    Reducer reducer(world, {{"a", 10}, {"b", 10}, {"c", 10}}, options);
    const auto step = [&](const std::vector<std::size_t>& order) {
      for (const std::size_t i : order) {
        for (float& x : reducer.gradient(i))
          x = static_cast<float>(10 * i) + static_cast<float>(world.rank());
        reducer.ready(i);
      }
      reducer.finish();
      for (std::size_t i = 0; i < 3; ++i) {
        for (const float x : reducer.gradient(i))
          base::require(x == static_cast<float>(10 * i) + 0.5F, "parameter {} is {}", i, x);
      }
    };
    step(world.rank() == 0 ? std::vector<std::size_t>{1, 0, 2} : std::vector<std::size_t>{2, 1, 0});
    base::require(reducer.generation() == 1, "generation {}", reducer.generation());
    base::require(reducer.gradient(2).data() == reducer.buffer().data(), "what is ready last must lie first");
    step({1, 0, 2});
    step({2, 0, 1});
    base::require(reducer.generation() == 1, "laid out a second time");
  });
}

TEST_CASE("parameters without a gradient") {
  engine::run_local(2, {}, [](Communicator& world) {
    const std::vector<Reducer::Parameter> parameters{{"a", 10}, {"b", 20}, {"c", 30}};
    const auto run = [&](Missing missing, bool b_on_rank_1) {
      ReducerOptions options;
      options.missing = missing;
      options.bucket_bytes = options.first_bucket_bytes = 1;
      Reducer reducer(world, parameters, options);
      std::string problem;
      for (int step = 0; step < 2; ++step) {
        for (const std::size_t i : {2U, 1U, 0U}) {
          for (float& x : reducer.gradient(i)) x = 2.0F;
          if (i != 1 || (world.rank() == 1 && b_on_rank_1)) reducer.ready(i);
        }
        try {
          reducer.finish();
        } catch (const InvalidArgument& error) {
          problem = error.what();
        }
        const float b = reducer.gradient(1)[0];
        base::require(b == (b_on_rank_1 ? 1.0F : 0.0F) && reducer.gradient(0)[9] == 2.0F, "b is {}", b);
        base::require(reducer.got_gradient(0), "a had one");
        if (missing == Missing::skip) base::require(reducer.got_gradient(1) == b_on_rank_1, "b: wrong");
      }
      return problem;
    };
    base::require(run(Missing::zero, false).empty() && run(Missing::skip, true).empty(), "no error expected");
    base::require(run(Missing::skip, false).empty(), "no error expected");
    const std::string problem = run(Missing::error, true);
    base::require(problem.find("'b' on rank 0") != std::string::npos, "said '{}'", problem);
  });
}

TEST_CASE("what a Reducer refuses") {
  std::atomic<int> refused = 0;
  engine::run_local(2, {}, [&](Communicator& world) {
    const auto expect = [&]<class E>(const auto& call, E*) {
      try {
        call();
      } catch (const E&) {
        ++refused;
      }
    };
    InvalidArgument* invalid = nullptr;
    MismatchError* mismatch = nullptr;
    expect([&] { Reducer reducer(world, {}); }, invalid);
    expect([&] { Reducer reducer(world, {{"a", 1}}, {.op = Op::max}); }, invalid);
    expect([&] { Reducer reducer(world, {{world.rank() == 0 ? "a" : "b", 1}}); }, mismatch);
    expect([&] { Reducer reducer(world, {{"a", world.rank() == 0 ? 1U : 2U}}); }, mismatch);
    Reducer reducer(world, {{"a", 1}, {"b", 1}});
    expect([&] { static_cast<void>(reducer.gradient(2)); }, invalid);
    reducer.ready(0);
    expect([&] { reducer.ready(0); }, invalid);
    reducer.finish();
  });
  CHECK(refused == 12);
}
