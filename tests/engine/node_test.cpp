// Ranks that see each other's memory: the arena, what is said when something goes wrong, and what is left.
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "engine/communicator_state.hpp"
#include "engine/local.hpp"
#include "engine/node/arena.hpp"
#include "engine/node/chunks.hpp"
#include "engine/node/group.hpp"
#include "engine/node/operation.hpp"
#include "support/catch.hpp"
#include "tutti/communicator.hpp"

using namespace tutti;
using namespace tutti::engine;

namespace {

LocalOptions sharing(double timeout = 60) {
  LocalOptions options{.shared_memory = true};
  options.core.timeout = Seconds(timeout);
  options.core.shared_cell = 4096;
  return options;
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "nothing";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("buffers of the arena are zeroed, seen by peers, and go in any order") {
  run_local(3, sharing(), [](Communicator& world) {
    std::vector<Buffer<float>> buffers;
    for (std::size_t i = 0; i < 20; ++i) {
      buffers.push_back(world.allocate<float>(1000 + i));
      const auto zero = [](float x) { return x == 0; };
      base::require(std::all_of(buffers.back().begin(), buffers.back().end(), zero), "not zeroed");
      if (i % 3 == static_cast<std::size_t>(world.rank())) buffers.erase(buffers.begin());
    }
    const Buffer<float> last = world.allocate<float>(100'000);
    for (float& x : last) x = static_cast<float>(world.rank() + 1);
    world.allreduce(last.span(), Op::sum);
    base::require(last[99'999] == 6, "wrong sum {}", last[99'999]);
    base::require(world.state().node() != nullptr, "ranks share no memory");
    const std::byte* peers =
        world.state().peer_memory(reinterpret_cast<const std::byte*>(last.data()), 4, (world.rank() + 1) % 3);
    base::require(*reinterpret_cast<const float*>(peers) == 6, "the peer's buffer reads wrong");
    world.barrier();
  });
}

TEST_CASE("a word means the same place in every part, and nothing outside") {
  const auto sharer = transport::make_thread_sharer();
  const transport::NodePlace alone{
      .rank = 0, .ranks = 1, .gather = [](const transport::Record& r) { return std::vector{r}; }};
  node::Arena arena(0, 1);
  std::byte* const first = arena.add(sharer->share(alone, 8192));
  std::byte* const second = arena.add(sharer->share(alone, 12288));
  const node::Word word = arena.word_of(second + 100, 8000);
  CHECK(word != 0);
  CHECK(arena.at(word, 0) == second + 100);
  CHECK(arena.word_of(second + 100, 8193) == 0);
  CHECK(arena.word_of(first - 1, 1) == 0);
  CHECK(arena.word_of(&arena, 1) == 0);
  arena.give_back(second);
  CHECK(arena.word_of(second + 100, 1) == 0);
  CHECK(arena.at(word, 0) == nullptr);
  CHECK(arena.word_of(first, 4096) != 0);
}

TEST_CASE("a chunk never needs more room than a cell, and chunks cover everything") {
  for (const std::size_t count : {1UL, 15UL, 1000UL, 1025UL, 70'001UL}) {
    for (const Rank ranks : {2, 3, 8}) {
      std::vector<float> input(count * static_cast<std::size_t>(ranks), 1.0F);
      std::vector<float> output(count);
      const Request request{.collective = schedule::Collective::reduce_scatter,
                            .input = input.data(),
                            .output = output.data(),
                            .count = count};
      const node::Chunks chunks(request, 0, ranks, 4096, false, false);
      std::vector<std::vector<std::byte>> cells(static_cast<std::size_t>(ranks),
                                                std::vector<std::byte>(4096 + 64));
      std::vector<std::byte*> places;
      for (auto& cell : cells) {
        std::fill(cell.begin() + 4096, cell.end(), std::byte{0x5a});
        places.push_back(cell.data());
      }
      std::vector<const void*> scratch(places.size());
      for (std::uint64_t k = 0; k < chunks.count(); ++k) {
        for (Rank r = 0; r < ranks; ++r)
          node::Chunks(request, r, ranks, 4096, false, false).stage(k, places[static_cast<std::size_t>(r)]);
        chunks.reduce(k, places, scratch);
      }
      CHECK(std::count(output.begin(), output.end(), static_cast<float>(ranks)) == static_cast<long>(count));
      for (const auto& cell : cells) CHECK(cell[4096] == std::byte{0x5a});
    }
  }
}

TEST_CASE("a rank that never comes is named, with what every rank is in") {
  const auto errors = run_local_catching(3, sharing(0.3), [](Communicator& world) {
    std::vector<float> data(5000, 1.0F);
    world.allreduce(std::span(data), Op::sum, {.name = "first"});
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return;
    }
    world.allreduce(std::span(data), Op::sum, {.name = "second"});
  });
  for (const std::size_t rank : {0U, 2U}) {
    CHECK_THAT(text_of(errors[rank]),
               ContainsSubstring("'second'") && ContainsSubstring("rank 1 (in this process)") &&
                   ContainsSubstring("has ended operation #") && ContainsSubstring("is in operation #"));
  }
}

TEST_CASE("a rank that fails takes the others with it, in words, in blocking and asynchronous calls") {
  for (const bool async : {false, true}) {
    const auto errors = run_local_catching(4, sharing(20), [async](Communicator& world) {
      std::vector<float> data(world.rank() == 2 ? 300 : 200, 1.0F);
      if (async) {
        world.allreduce_async(std::span(data), Op::sum, {.name = "weights"}).wait();
      } else {
        world.allreduce(std::span(data), Op::sum, {.name = "weights"});
      }
    });
    for (const auto& error : errors) {
      REQUIRE(error);
      CHECK_THROWS_AS(std::rethrow_exception(error), MismatchError);
      CHECK_THAT(text_of(error),
                 ContainsSubstring("of 300 f32 'weights'") && ContainsSubstring("of 200 f32 'weights'"));
    }
  }
}

TEST_CASE("many asynchronous calls in shared memory, with a thread and without, mixed with blocking ones") {
  for (const bool thread : {false, true}) {
    LocalOptions options = sharing();
    options.background_thread = thread;
    run_local(4, options, [](Communicator& world) {
      std::vector<std::vector<float>> data;
      std::vector<Work> works;
      for (std::size_t i = 0; i < 100; ++i) {
        data.emplace_back(1 + i * 37, static_cast<float>(world.rank()));
        if (i % 10 == 9) {
          world.allreduce(std::span(data[i]), Op::max);
        } else {
          works.push_back(world.allreduce_async(std::span(data[i]), Op::max));
        }
      }
      for (Work& work : works) work.wait();
      for (const auto& part : data) base::require(part.back() == 3 && part.front() == 3, "wrong result");
    });
  }
}

TEST_CASE("with too little memory for large pieces there are small ones; with none, messages") {
  for (const std::uint64_t cell : {std::uint64_t{4096}, std::uint64_t{1} << 20U}) {
    LocalOptions options = sharing();
    options.core.shared_cell = cell;
    run_local(2, options, [](Communicator& world) {
      std::vector<double> data(100'000, 1.5);
      world.allreduce(std::span(data), Op::sum);
      base::require(data[99'999] == 3.0, "wrong sum");
    });
  }
}

TEST_CASE("work behind work that failed ends too, and so does giving up several of them") {
  const auto errors = run_local_catching(2, sharing(20), [](Communicator& world) {
    if (world.rank() == 1) return;
    std::vector<float> data(10'000, 1.0F);
    Work first = world.allreduce_async(std::span(data).first(5000), Op::sum);
    Work second = world.allreduce_async(std::span(data).subspan(5000), Op::sum);
    std::string text;
    for (Work* work : {&first, &second}) {
      try {
        work->wait();
      } catch (const PeerLostError& error) {
        text += error.what();
      }
    }
    throw std::runtime_error(text);
  });
  CHECK_FALSE(errors[1]);
  CHECK_THAT(text_of(errors[0]), ContainsSubstring("rank 1 (in this process) has let its communicator go") &&
                                     ContainsSubstring("an operation before it has failed"));
  for (const bool thread : {false, true}) {
    LocalOptions options = sharing(20);
    options.background_thread = thread;
    const auto thrown = run_local_catching(2, options, [](Communicator& world) {
      std::vector<float> data(300, 1.0F);
      if (world.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::seconds(5));
        return;
      }
      const Work first = world.allreduce_async(std::span(data).first(100), Op::sum);
      const Work second = world.allreduce_async(std::span(data).subspan(100, 100), Op::sum);
      const Work third = world.allreduce_async(std::span(data).subspan(200), Op::sum);
      throw std::runtime_error("on its way");
    });
    CHECK_THAT(text_of(thrown[0]), ContainsSubstring("on its way"));
  }
}

TEST_CASE("one call too many is told, over shared memory and over messages") {
  const auto errors = run_local_catching(3, sharing(20), [](Communicator& world) {
    float one = 1;
    world.allreduce(std::span(&one, 1), Op::sum);
    if (world.rank() != 1) world.allreduce(std::span(&one, 1), Op::sum);
  });
  CHECK_FALSE(errors[1]);
  for (const std::size_t rank : {0U, 2U})
    CHECK_THAT(text_of(errors[rank]), ContainsSubstring("will not come"));
}

TEST_CASE("allocate is refused, on every rank, where it cannot be right") {
  const auto errors = run_local_catching(3, sharing(20), [](Communicator& world) {
    bool thrown = false;
    try {
      world.allocate<double>((std::size_t{1} << 61U) + 1);
    } catch (const InvalidArgument&) {
      thrown = true;
    }
    base::require(thrown, "an overflow was accepted");
    world.allocate<float>(world.rank() == 1 ? 100'000 : 25);
  });
  for (const auto& error : errors) CHECK_THAT(text_of(error), ContainsSubstring("400000 on rank 1"));
}

TEST_CASE("what all ranks have given back is free again at the next allocation") {
  run_local(3, sharing(), [](Communicator& world) {
    const std::byte* old = nullptr;
    {
      const auto buffer = world.allocate<float>(1000);
      old = reinterpret_cast<const std::byte*>(buffer.data());
    }
    const auto next = world.allocate<float>(1000);
    if (reinterpret_cast<const std::byte*>(next.data()) == old) return;
    base::require(world.state().peer_memory(old, 4, 0) == nullptr, "the old buffer is still mapped");
  });
}

TEST_CASE("a prescale where nothing is added is an error") {
  for (const bool shared : {false, true}) {
    LocalOptions options = sharing();
    options.shared_memory = shared;
    run_local(2, options, [](Communicator& world) {
      std::vector<float> data(20, 1.0F);
      int thrown = 0;
      try {
        world.broadcast(std::span(data), 0, {.prescale = 0.5});
      } catch (const InvalidArgument&) {
        ++thrown;
      }
      try {
        world.allgather(std::span<const float>(data).first(10), std::span(data), {.prescale = 0.5});
      } catch (const InvalidArgument&) {
        ++thrown;
      }
      base::require(thrown == 2, "{} of 2 refused", thrown);
    });
  }
}
