#include "bench/tune.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "engine/communicator_state.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::bench;
using schedule::Collective;

namespace {

Race race_of(std::uint64_t bytes, const char* canonical, const char* any) {
  Race race{.bytes = bytes, .contenders = {}};
  for (const char* name : {canonical, any})
    race.contenders.push_back({.choice = engine::parse_choice(Collective::allreduce, name), .median = 1e-6});
  race.winner[0] = 0;
  race.winner[1] = 1;
  return race;
}

}  // namespace

TEST_CASE("rules cover all sizes, and neighbours that agree are one") {
  const auto rules = rules_of(
      {race_of(16, "one_shot", "mpi"), race_of(64, "one_shot", "ring"), race_of(256, "direct", "ring")}, 4,
      2);
  REQUIRE(rules.size() == 4);
  const auto text = [](const engine::Rule& rule) { return text_of(rule.use); };
  CHECK(text(rules[0]) == "one_shot");
  CHECK(rules[0].from == 0);
  CHECK(rules[0].to == 128);  // the geometric middle of 64 and 256
  CHECK(text(rules[1]) == "direct");
  CHECK(rules[1].from == 129);
  CHECK(rules[1].to == std::numeric_limits<std::uint64_t>::max());
  CHECK(text(rules[2]) == "mpi");
  CHECK(rules[2].to == 32);
  CHECK(rules[2].any_order == true);
  CHECK(text(rules[3]) == "ring");
  CHECK(rules[3].from == 33);
  CHECK(rules[3].to == std::numeric_limits<std::uint64_t>::max());
  CHECK(rules[3].ranks == 4);
  CHECK(rules[3].nodes == 2);
}

TEST_CASE("between two sizes with other winners there is one more race") {
  const auto races = [](std::uint64_t second) {
    return std::vector{race_of(4, "one_shot", "ring"), race_of(second, "one_shot", "mpi"),
                       race_of(4096, "direct", "mpi"), race_of(65536, "direct", "mpi")};
  };
  CHECK(borders_of(races(64)) == std::vector<std::uint64_t>{16, 512});
  CHECK(borders_of(races(8)) == std::vector<std::uint64_t>{180});
  CHECK(borders_of({}).empty());
}

TEST_CASE("every legal way is raced, and what wins is legal") {
  const base::SteadyClock clock;
  for (const bool shared : {false, true}) {
    engine::LocalOptions options;
    options.shared_memory = true;
    if (!shared) options.nodes = {0, 1, 2};
    engine::run_local(3, options, [&](Communicator& world) {
      std::vector<Race> races;
      const TuneOptions tune_options{.collectives = {Collective::allreduce, Collective::broadcast},
                                     .begin = 4,
                                     .end = 4096,
                                     .factor = 32,
                                     .seconds = 0.001};
      const auto profile =
          tune(world, clock, tune_options, "a machine", [&](const Race& race) { races.push_back(race); });
      if (world.rank() != 0) return;
      for (const Collective collective : tune_options.collectives) {
        for (const std::uint64_t bytes : {4U, 128U, 4096U}) {
          CHECK(std::ranges::count_if(races, [&](const Race& race) {
                  return race.collective == collective && race.bytes == bytes;
                }) == 1);
        }
      }
      CHECK(profile.memory.has_value() == shared);
      CHECK(profile.local.has_value() == shared);
      CHECK(profile.remote.has_value() != shared);
      for (const Race& race : races) {
        CHECK(race.contenders.size() >= (race.collective == Collective::allreduce ? 6U : 4U));
        CHECK(race.contenders[race.winner[0]].canonical);
        CHECK(race.contenders[race.winner[0]].median > 0);
        CHECK(race.contenders[race.winner[1]].median > 0);
        if (shared) CHECK(race.contenders[race.untuned[0]].choice.path == engine::Path::node);
        for (const Contender& contender : race.contenders) {
          if (race.collective == Collective::allreduce && contender.choice.algorithm != nullptr)
            CHECK(contender.canonical == (contender.choice.algorithm->name != "ring" &&
                                          contender.choice.algorithm->name != "double_tree"));
        }
      }
      CHECK(engine::Profile::parse(profile.to_json(), "x").warnings.empty());
    });
  }
}
