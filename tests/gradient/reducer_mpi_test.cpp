#include <chrono>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "tutti/reducer.hpp"
#include "tutti/session.hpp"

using namespace tutti;

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
