#include "base/wait.hpp"

#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::base;

TEST_CASE("the ladder spins, yields, then sleeps ever longer up to its limit") {
  Ladder ladder({.spins = 3, .yields = 2, .first_nap = Seconds(1e-6), .longest_nap = Seconds(3e-6)});
  for (int i = 0; i < 3; ++i) CHECK_FALSE(ladder.turn());
  CHECK_FALSE(ladder.about_to_sleep());
  for (int i = 0; i < 2; ++i) CHECK(ladder.turn());
  CHECK(ladder.about_to_sleep());
  CHECK(ladder.next_nap() == Seconds(1e-6));
  ladder.turn();
  CHECK(ladder.next_nap() == Seconds(2e-6));
  ladder.turn();
  CHECK(ladder.next_nap() == Seconds(3e-6));
  ladder.reset();
  CHECK_FALSE(ladder.about_to_sleep());
}

TEST_CASE("ranks without a core of their own do not spin") {
  CHECK(WaitLimits::for_load(2, 2).spins > 0);
  CHECK(WaitLimits::for_load(4, 2).spins == 0);
  CHECK(usable_processors() >= 1);
}
