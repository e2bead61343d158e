#include "gradient/chooser.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using gradient::Chooser;

namespace {

/// Takes steps that last as plans do; returns how many the race took.
template <class Time>
std::size_t race(Chooser& chooser, const Time& time_of) {
  std::size_t steps = 0;
  while (chooser.racing()) {
    if (chooser.note(time_of(chooser.current(), steps))) chooser.apply(chooser.decide());
    REQUIRE(++steps < 1000);
  }
  return steps;
}

std::size_t chosen_of(std::vector<Chooser::Plan> plans, const std::vector<double>& seconds,
                      std::optional<std::size_t> incumbent = {}) {
  Chooser chooser(std::move(plans), incumbent);
  race(chooser, [&](std::size_t plan, std::size_t) { return seconds[plan]; });
  return chooser.current();
}

/// Looks until it wants to race again, or so many; returns how many.
std::size_t looks(Chooser& chooser, double seconds, std::size_t most) {
  for (std::size_t look = 1; look <= most; ++look) {
    while (!chooser.note(seconds)) {
    }
    const auto decision = chooser.decide();
    chooser.apply(decision);
    if (decision.again != 0) return look;
  }
  return most + 1;
}

}  // namespace

TEST_CASE("the fastest plan is chosen, one that loses less where it is as fast") {
  CHECK(chosen_of({{0}, {1}, {2}}, {3, 2, 1}) == 2);
  CHECK(chosen_of({{0}, {1}, {2}}, {1, 2, 3}) == 0);
  CHECK(chosen_of({{0}, {1}, {2}}, {1.015, 1.01, 1}) == 0);
  CHECK(chosen_of({{0}, {1}, {2}}, {1.03, 1.015, 1}) == 1);
  CHECK(chosen_of({{3}}, {1}) == 0);
}

TEST_CASE("what is in place stays unless another one is clearly faster") {
  CHECK(chosen_of({{1}, {1}}, {1, 1.01}, 1) == 1);
  CHECK(chosen_of({{1}, {1}}, {1, 1.05}, 1) == 0);
  CHECK(chosen_of({{0}, {1}}, {1, 1}, 1) == 0);
}

TEST_CASE("slow plans are out after their first turn, and first steps of turns do not count") {
  Chooser chooser(std::vector<Chooser::Plan>{{0}, {1}, {2}});
  std::vector<std::size_t> steps_of(3);
  std::size_t in_turn = 0;
  std::size_t last = 3;
  race(chooser, [&](std::size_t plan, std::size_t) {
    in_turn = plan == last ? in_turn + 1 : 0;
    last = plan;
    ++steps_of[plan];
    const double usual = plan == 0 ? 2.0 : 1.0 + 0.05 * static_cast<double>(plan);
    return in_turn == 0 ? 100.0 : usual;
  });
  CHECK(steps_of[0] == Chooser::shortest_turn);
  CHECK(steps_of[1] == Chooser::rounds * Chooser::shortest_turn);
  CHECK(chooser.current() == 1);
  CHECK(chooser.measured(0) == 2.0);
}

TEST_CASE("short steps have longer turns, but not those of a plan that is far slower") {
  Chooser chooser(std::vector<Chooser::Plan>{{2}, {1}, {0}});
  std::vector<std::size_t> steps_of(3);
  race(chooser, [&](std::size_t plan, std::size_t) {
    ++steps_of[plan];
    return plan == 2 ? 0.02 : plan == 1 ? 0.0105 : 0.01;
  });
  CHECK(steps_of[0] == Chooser::longest_turn / 2 + 2 * Chooser::longest_turn);
  CHECK(steps_of[2] == Chooser::shortest_turn);
  CHECK(chooser.current() == 0);
}

TEST_CASE("steps that differ by a fifth from one to the next still tell plans apart that differ by a tenth") {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    base::Random random(seed);
    Chooser chooser(std::vector<Chooser::Plan>{{1}, {1}, {1}});
    race(chooser, [&](std::size_t plan, std::size_t) {
      return (plan == 0 ? 0.0125 : plan == 1 ? 0.014 : 0.0155) * std::max(0.5, 1 + 0.2 * random.normal());
    });
    wrong += chooser.current() != 0 ? 1 : 0;
  }
  CHECK(wrong <= 10);
}

TEST_CASE("one slow step in a turn decides nothing") {
  Chooser chooser(std::vector<Chooser::Plan>{{0}, {1}});
  race(chooser, [&](std::size_t plan, std::size_t step) { return step == 2 ? 50.0 : plan == 0 ? 1.0 : 2.0; });
  CHECK(chooser.current() == 0);
}

TEST_CASE("another race once steps take another time, twice, and later after each that changed nothing") {
  Chooser chooser(std::vector<Chooser::Plan>{{0}, {1}});
  race(chooser, [](std::size_t plan, std::size_t) { return plan == 0 ? 2.0 : 1.0; });
  CHECK(looks(chooser, 1.0, 20) == 21);
  CHECK(looks(chooser, 1.15, 20) == 21);
  CHECK(looks(chooser, 1.3, 20) == 2);
  CHECK(looks(chooser, 0.7, 20) == 1);  // nobody raced: it is still another time
  Chooser again(std::vector<Chooser::Plan>{{0}, {1}}, 1, chooser.patience());
  race(again, [](std::size_t plan, std::size_t) { return plan == 0 ? 2.0 : 1.0; });
  CHECK(again.patience() == 4);
  CHECK(looks(again, 1.0, 1) == 2);
  CHECK(looks(again, 2.0, 20) == 4);
}

TEST_CASE("looks are rarer where steps are long in number, never in time") {
  for (const double seconds : {10.0, 1e-4}) {
    Chooser chooser(std::vector<Chooser::Plan>{{0}, {1}});
    race(chooser, [&](std::size_t plan, std::size_t) { return plan == 0 ? seconds : 3 * seconds; });
    std::size_t steps = 1;
    while (!chooser.note(seconds)) ++steps;
    CHECK(steps == (seconds > 1 ? 8 : 64));
  }
}

TEST_CASE("the number of plans is checked") {
  CHECK_THROWS_AS(Chooser({}), InvalidArgument);
  CHECK_THROWS_AS(Chooser(std::vector<Chooser::Plan>(65)), InvalidArgument);
}
