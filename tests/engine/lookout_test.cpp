#include "engine/lookout.hpp"

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/communicator.hpp"

using namespace tutti;
using namespace tutti::engine;

namespace {

/// What each rank's calls ended with, over one node, several, or messages only.
LocalOptions options_of(int way, Rank ranks, bool thread) {
  LocalOptions options;
  options.shared_memory = way != 0;
  options.background_thread = thread;
  options.protocol = transport::Protocol::rendezvous;
  for (Rank r = 0; way == 2 && r < ranks; ++r) options.nodes.push_back(r / 2);
  return options;
}

}  // namespace

TEST_CASE("when one of several operations fails on one rank, all of them end on every rank") {
  // No time limit: who is not told waits for ever, and the test's own limit ends it.
  for (const int way : {0, 1, 2}) {
    for (const bool thread : {false, true}) {
      std::atomic<int> ended = 0;
      std::atomic<int> told = 0;
      run_local(4, options_of(way, 4, thread), [&](Communicator& world) {
        std::vector<std::vector<float>> data(4, std::vector<float>(40'000, 1.0F));
        std::vector<Work> works;
        for (std::size_t i = 0; i < data.size(); ++i) {
          const std::size_t count = i == 1 && world.rank() == 2 ? 30'000 : 40'000;
          try {
            works.push_back(world.allreduce_async(std::span(data[i]).first(count), Op::sum));
          } catch (const Error&) {
            ++ended;  // one before it has failed already
          }
        }
        for (std::size_t i = works.size(); i-- > 0;) {
          try {
            works[i].wait();
          } catch (const MismatchError&) {
            ++told;
          } catch (const Error&) {
            // Behind the one that differs: what it is called does not matter.
          }
          ++ended;
        }
        while (ended < 16) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
      CHECK(ended == 16);
      CHECK(told >= 4);
    }
  }
}

TEST_CASE("an operation that waits is told when ranks are in other kinds of operations") {
  for (const int way : {0, 1, 2}) {
    for (int kind = 0; kind < 6; ++kind) {
      std::atomic<int> told = 0;
      run_local(4, options_of(way, 4, false), [&](Communicator& world) {
        std::vector<float> data(kind == 5 ? 400'000 : 100, 1.0F);
        const bool odd = world.rank() == 3;
        try {
          if (odd && kind == 0)
            world.broadcast(std::span(data), 0);
          else if (odd && kind == 1)
            world.allreduce(data.data(), data.data(), 100, DType::bf16, Op::sum);
          else if (odd && kind == 2)
            world.allreduce(std::span(data), Op::average);
          else if (odd && kind == 3)
            world.allreduce(std::span(data), Op::sum, {.algorithm = "direct"});
          else if (kind == 4 && world.rank() >= 2)
            world.allreduce(std::span(data).first(50), Op::sum);
          else if (kind == 5 && world.rank() >= 2)
            world.allreduce(std::span(data).first(200'000), Op::sum);
          else
            world.allreduce(std::span(data), Op::sum);
          world.barrier();
        } catch (const MismatchError&) {
          ++told;
        }
        while (told < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
      INFO("way " << way << ", kind " << kind);
      CHECK(told == 4);
    }
  }
}

TEST_CASE("names need not outlive an asynchronous call, and allocating beside one is legal") {
  for (const int way : {0, 1, 2}) {
    for (const bool thread : {false, true}) {
      run_local(4, options_of(way, 4, thread), [](Communicator& world) {
        std::vector<std::vector<float>> data(6, std::vector<float>(300'000, 1.0F));
        std::vector<Work> works;
        for (std::size_t i = 0; i < data.size(); ++i) {
          std::string name = "a name that is too long for a small string, number " + std::to_string(i);
          works.push_back(world.allreduce_async(std::span(data[i]), Op::sum, {.name = name}));
          name.assign(name.size(), 'x');
          if (i % 2 == 1) {
            const Buffer<float> buffer = world.allocate<float>(1000);
            if (buffer.span()[999] != 0.0F) throw Error("not zeroed");
          }
        }
        for (Work& work : works) work.wait();
        for (const auto& part : data) {
          if (part.front() != 4.0F || part.back() != 4.0F) throw Error("wrong sum");
        }
      });
    }
  }
}

TEST_CASE("ranks that allocate unlike amounts are all told") {
  for (const int way : {1, 2}) {
    std::atomic<int> told = 0;
    run_local(4, options_of(way, 4, false), [&](Communicator& world) {
      try {
        static_cast<void>(world.allocate<float>(world.rank() >= 2 ? 100 : 200));
      } catch (const MismatchError&) {
        ++told;
      }
      world.barrier();
    });
    CHECK(told == 4);
  }
}
