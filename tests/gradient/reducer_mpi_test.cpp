#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "tutti/reducer.hpp"
#include "tutti/session.hpp"

using namespace tutti;

TEST_CASE("a Reducer with a codec over MPI") {
  Session session;
  Communicator& world = session.world();
  for (const char* codec : {"bf16", "int8", "int4"}) {
    ReducerOptions options;
    options.codec = codec;
    options.first_bucket_bytes = 50'000;
    options.bucket_bytes = 2'000'000;
    Reducer reducer(
        world, {{"a", 700'001}, {"b", 5}, {"c", 40'000}, {.name = "d", .count = 3, .exact = true}}, options);
    for (int step = 0; step < 4; ++step) {
      for (std::size_t i = 4; i-- > 0;) {
        for (float& x : reducer.gradient(i)) x = static_cast<float>(1 + world.rank());
        reducer.ready(i);
      }
      reducer.finish();
      const float mean = static_cast<float>(world.size() + 1) / 2;
      for (std::size_t i = 0; i < 4; ++i) {
        const auto view = reducer.gradient(i);
        const float tolerance = i == 3 ? 0 : 0.02F * mean;
        for (const float x : view) REQUIRE(std::abs(x - mean) <= tolerance);
      }
    }
  }
}

TEST_CASE("a Reducer over MPI: many steps beside computing") {
  Session session;
  Communicator& world = session.world();
  ReducerOptions options;
  options.op = Op::sum;
  options.first_bucket_bytes = 1000;
  options.bucket_bytes = 100'000;
  std::vector<Reducer::Parameter> parameters;
  for (std::size_t i = 0; i < 20; ++i) parameters.push_back({"p" + std::to_string(i), 1 + 5000 * (i % 4)});
  Reducer reducer(world, parameters, options);
  for (int step = 0; step < 10; ++step) {
    for (std::size_t i = parameters.size(); i-- > 0;) {
      for (float& x : reducer.gradient(i)) x = static_cast<float>(step) + static_cast<float>(world.rank());
      if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      reducer.ready(i);
    }
    reducer.finish();
    const auto p = static_cast<float>(world.size());
    for (const float x : reducer.buffer()) REQUIRE(x == p * static_cast<float>(step) + p * (p - 1) / 2);
  }
}
