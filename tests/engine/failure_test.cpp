#include <exception>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/communicator.hpp"

using namespace tutti;
using namespace tutti::engine;

namespace {

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "nothing";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("whichever call of the transport fails, every rank ends with a named error and nobody hangs") {
  for (const auto protocol : {transport::Protocol::eager, transport::Protocol::rendezvous}) {
    bool untouched = false;
    for (std::uint64_t n = 1; !untouched; ++n) {
      LocalOptions options{.protocol = protocol, .faults = {.fail_at = n}};
      options.core.segment_bytes = 64;
      options.core.timeout = Seconds(60);
      const auto errors = run_local_catching(3, options, [](Communicator& world) {
        std::vector<float> data(50, 1.0F);
        world.allreduce(std::span(data), Op::sum, {.name = "weights", .algorithm = "halving_doubling"});
      });
      std::size_t failed = 0;
      for (const auto& error : errors) {
        if (!error) continue;
        ++failed;
        CHECK_THAT(text_of(error), ContainsSubstring("gone"));
      }
      untouched = failed == 0;
      REQUIRE(n < 5000);
    }
  }
}

TEST_CASE("a failed operation leaves a communicator that says so") {
  LocalOptions options{.faults = {.fail_at = 1}};
  const auto errors = run_local_catching(2, options, [](Communicator& world) {
    float one = 1;
    try {
      world.allreduce(std::span(&one, 1), Op::sum);
    } catch (const PeerLostError&) {
      world.barrier();
    }
  });
  CHECK_THAT(text_of(errors[0]) + text_of(errors[1]), ContainsSubstring("takes no further operations"));
}

TEST_CASE("an asynchronous failure arrives in wait() and poisons the communicator") {
  for (const bool thread : {false, true}) {
    LocalOptions options{.background_thread = thread};
    const auto errors = run_local_catching(2, options, [](Communicator& world) {
      std::vector<float> data(static_cast<std::size_t>(world.rank()) + 1, 1.0F);
      Work work = world.allreduce_async(std::span(data), Op::sum, {.algorithm = "recursive_doubling"});
      bool thrown = false;
      try {
        work.wait();
      } catch (const MismatchError&) {
        thrown = true;
      }
      base::require(thrown, "no mismatch");
      world.barrier();
    });
    CHECK_THAT(text_of(errors[0]), ContainsSubstring("no further operations"));
    CHECK_THAT(text_of(errors[1]), ContainsSubstring("no further operations"));
  }
}

TEST_CASE("a rank that never comes is named when the deadline passes, in blocking and asynchronous calls") {
  for (const bool async : {false, true}) {
    LocalOptions options;
    options.core.timeout = Seconds(0.2);
    const auto errors = run_local_catching(2, options, [async](Communicator& world) {
      if (world.rank() == 1) return;
      std::vector<float> data(100, 1.0F);
      const CallOptions call{.name = "conv1.weight", .algorithm = "ring"};
      if (async) {
        world.allreduce_async(std::span(data), Op::sum, call).wait();
      } else {
        world.allreduce(std::span(data), Op::sum, call);
      }
    });
    CHECK_FALSE(errors[1]);
    CHECK_THAT(text_of(errors[0]),
               ContainsSubstring("operation #0, allreduce sum of 100 f32 'conv1.weight'") &&
                   ContainsSubstring("on rank 0") && ContainsSubstring("message from rank 1") &&
                   ContainsSubstring("deadline"));
  }
}
