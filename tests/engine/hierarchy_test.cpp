#include "engine/hierarchy.hpp"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/communicator.hpp"

using namespace tutti;
using namespace tutti::engine;

TEST_CASE("layouts are regular, or nothing") {
  const auto layout = layout_of({0, 0, 2, 2, 4, 4});
  REQUIRE(layout);
  CHECK(layout->nodes == 3);
  CHECK(layout->local == 2);
  CHECK(layout->is_canonical());
  CHECK_FALSE(layout_of({0, 0, 0, 3}));
  CHECK_FALSE(layout_of({0, 1, 0, 1}));
  CHECK_FALSE(layout_of({0, 0, 2, 2, 0, 0}));
  CHECK_FALSE(layout_of({0, 0, 0, 3, 3, 3})->is_canonical());
  CHECK(layout_of({5})->local == 1);
}

TEST_CASE("the bits of a sum do not depend on how ranks lie on nodes, nor on where buffers are") {
  for (const std::size_t count : {5UL, 5000UL, 700'003UL}) {
    std::set<std::uint64_t> hashes;
    std::mutex mutex;
    const std::vector<std::vector<std::int32_t>> layouts{{},
                                                         {0, 1, 2, 3, 4, 5, 6, 7},
                                                         {0, 0, 2, 2, 4, 4, 6, 6},
                                                         {0, 0, 0, 0, 4, 4, 4, 4},
                                                         {0, 0, 0, 3, 3, 3, 3, 3}};
    for (const auto& nodes : layouts) {
      for (const bool arena : {false, true}) {
        LocalOptions options{.shared_memory = true, .nodes = nodes};
        options.core.timeout = Seconds(60);
        run_local(8, options, [&](Communicator& world) {
          const Buffer<float> shared = world.allocate<float>(count);
          std::vector<float> own(count);
          const std::span<float> data = arena ? shared.span() : std::span(own);
          base::Random random(7, static_cast<std::uint64_t>(world.rank()));
          for (float& x : data) x = static_cast<float>(random.normal());
          world.allreduce(data, Op::average);
          std::uint64_t hash = 0;
          for (const float x : data) hash = base::mix(hash ^ std::bit_cast<std::uint32_t>(x));
          const std::scoped_lock lock(mutex);
          hashes.insert(hash);
        });
      }
    }
    CHECK(hashes.size() == 1);
  }
}

TEST_CASE("a rank that calls something else is told over nodes, too") {
  LocalOptions options{.shared_memory = true, .nodes = {0, 0, 2, 2}};
  options.core.timeout = Seconds(20);
  std::atomic<int> told = 0;
  run_local(4, options, [&told](Communicator& world) {
    std::vector<float> data(world.rank() == 3 ? 100 : 200, 1.0F);
    try {
      world.allreduce(std::span(data), Op::sum, {.name = "weights"});
    } catch (const MismatchError&) {
      ++told;
    }
    // A rank that is gone would be found before its word is heard.
    while (told < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  CHECK(told == 4);
}

TEST_CASE("many asynchronous calls over nodes, of all sizes, waited for in any order, beside blocking ones") {
  for (const bool thread : {false, true}) {
    LocalOptions options{.shared_memory = true, .nodes = {0, 0, 2, 2}, .background_thread = thread};
    options.faults = {.delay_turns = 3, .seed = 5};
    options.core.timeout = Seconds(60);
    run_local(4, options, [](Communicator& world) {
      std::vector<std::vector<float>> data;
      std::vector<Work> works;
      for (std::size_t i = 0; i < 60; ++i) {
        data.emplace_back(1 + i * i * 17, static_cast<float>(world.rank() + 1));
        if (i % 7 == 6) {
          world.allreduce(std::span(data[i]), Op::sum);
        } else {
          works.push_back(world.allreduce_async(std::span(data[i]), Op::sum));
        }
      }
      for (std::size_t i = works.size(); i-- > 0;) works[i].wait();
      for (const auto& part : data)
        base::require(part.front() == 10 && part.back() == 10, "{} and {} are not 10", part.front(),
                      part.back());
    });
  }
}
