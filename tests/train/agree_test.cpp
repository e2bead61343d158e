#include "train/agree.hpp"

#include <string>
#include <vector>

#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::train;

TEST_CASE("what goes wrong on one rank is the same error on all, with that rank's name") {
  const auto errors = engine::run_local_catching(4, {}, [](Communicator& world) {
    agreed(world, [] {});
    agreed(world, [&] {
      if (world.rank() >= 2) base::fail<SystemError>("disk of rank {} is full", world.rank());
    });
  });
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK_THROWS_AS(std::rethrow_exception(error), base::AgreedError);
    CHECK_THROWS_WITH(std::rethrow_exception(error),
                      ContainsSubstring("rank 2 of 4 (") && ContainsSubstring("disk of rank 2 is full"));
  }
}

TEST_CASE("text of any length goes from the root to all") {
  for (const std::size_t length : {0U, 1U, 100000U}) {
    std::vector<std::string> got(3);
    engine::run_local(3, {}, [&](Communicator& world) {
      got[static_cast<std::size_t>(world.rank())] =
          broadcast_text(world, world.rank() == 1 ? std::string(length, 'x') : "other", 1);
    });
    for (const auto& text : got) CHECK(text == std::string(length, 'x'));
  }
}
