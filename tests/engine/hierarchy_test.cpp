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
#include "engine/communicator_state.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/communicator.hpp"

using namespace tutti;
using namespace tutti::engine;

TEST_CASE("how ranks lie on nodes") {
  const auto layout = layout_of({4, 4, 2, 4, 7, 2});
  CHECK(layout.nodes() == 3);
  CHECK(layout.sizes == std::vector<Rank>{3, 2, 1});
  CHECK(layout.node_of == std::vector<Rank>{0, 0, 1, 0, 2, 1});
  CHECK(layout.place_of == std::vector<Rank>{0, 1, 0, 2, 0, 1});
  CHECK(layout.largest() == 3);
  CHECK_FALSE(layout.even());
  CHECK(layout_of({0, 0, 2, 2, 4, 4}).even());
  CHECK(layout_of({5}).largest() == 1);
}

TEST_CASE("where nodes hold whole parts of the canonical tree, and where not") {
  const auto canonical = [](const std::vector<std::int32_t>& nodes) { return layout_of(nodes).canonical; };
  CHECK(canonical({0, 0, 1, 1}));
  CHECK(canonical({0, 0, 1, 1, 2, 2}));
  CHECK(canonical({0, 0, 1}));        // (0+1)+2
  CHECK_FALSE(canonical({0, 1, 1}));  // there is no 1+2
  CHECK(canonical({0, 0, 0, 1, 1}));  // ((0+1)+2)+(3+4)
  CHECK_FALSE(canonical({0, 0, 1, 1, 1}));
  CHECK(canonical({0, 0, 0, 0, 1, 1}));  // ((0+1)+(2+3))+(4+5)
  CHECK_FALSE(canonical({0, 0, 0, 1}));
  CHECK_FALSE(canonical({0, 0, 0, 0, 0, 1, 1, 1}));
  CHECK_FALSE(canonical({0, 0, 0, 1, 1, 1}));
  CHECK_FALSE(canonical({0, 1, 0, 1}));
  CHECK(canonical({0, 1, 2, 3, 4}));
  CHECK(canonical({3, 3, 3}));
}

TEST_CASE("nodes of unlike sizes, and ranks that take turns on nodes") {
  const std::vector<std::vector<std::int32_t>> layouts{
      {0, 0, 0, 1},    {0, 0, 0, 0, 0, 1, 1, 1}, {0, 1, 0, 1},      {0, 0, 1},
      {0, 0, 0, 1, 1}, {0, 1, 2, 0, 1, 2, 0},    {0, 0, 0, 1, 1, 1}};
  for (const auto& nodes : layouts) {
    const auto ranks = static_cast<Rank>(nodes.size());
    for (const bool any_order : {false, true}) {
      for (const std::size_t count : {1UL, 3000UL, 600'001UL}) {
        LocalOptions options{.shared_memory = true, .nodes = nodes};
        options.core.any_order = any_order;
        options.core.timeout = Seconds(60);
        run_local(ranks, options, [&](Communicator& world) {
          const auto way = world.state().route({.count = count, .any_order = any_order}).choice.path;
          const bool expected = any_order || layout_of(nodes).canonical;
          base::require((way == Path::hierarchy) == expected, "the way is {}", static_cast<int>(way));
          std::vector<float> data(count);
          std::vector<std::int32_t> numbers(count);
          for (std::size_t i = 0; i < count; ++i) {
            data[i] = static_cast<float>(i % 100) + static_cast<float>(world.rank());
            numbers[i] = static_cast<std::int32_t>(i) * (world.rank() + 1);
          }
          world.allreduce(std::span(data), Op::average);
          world.allreduce(std::span(numbers), Op::sum);
          for (std::size_t i = 0; i < count; ++i) {
            const auto sum = static_cast<float>(i % 100) * static_cast<float>(ranks) +
                             static_cast<float>(ranks * (ranks - 1) / 2);
            base::require(data[i] == sum / static_cast<float>(ranks), "element {} is {}", i, data[i]);
            base::require(numbers[i] == static_cast<std::int32_t>(i) * (ranks * (ranks + 1) / 2),
                          "number {} is {}", i, numbers[i]);
          }
        });
      }
    }
  }
}

TEST_CASE("the bits of a sum do not depend on how ranks lie on nodes, nor on where buffers are") {
  for (const std::size_t count : {5UL, 5000UL, 700'003UL}) {
    std::set<std::uint64_t> hashes;
    std::mutex mutex;
    const std::vector<std::vector<std::int32_t>> layouts{{},
                                                         {0, 1, 2, 3, 4, 5, 6, 7},
                                                         {0, 0, 2, 2, 4, 4, 6, 6},
                                                         {0, 0, 0, 0, 4, 4, 4, 4},
                                                         {0, 0, 0, 3, 3, 3, 3, 3},
                                                         {0, 0, 0, 0, 0, 0, 6, 6},
                                                         {0, 0, 2, 2, 2, 2, 4, 4},
                                                         {0, 1, 2, 3, 0, 1, 2, 3}};
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
