#include "schedule/schedule.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "schedule/stored.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::schedule;

namespace {

const Algorithm& algorithm_of(Collective collective, std::string_view name) {
  const Algorithm* found = find(collective, name);
  REQUIRE(found != nullptr);
  return *found;
}

std::string defect_after(Collective collective, std::string_view name, Rank ranks,
                         const std::function<void(Stored&)>& spoil) {
  Stored stored(Generated(algorithm_of(collective, name), ranks));
  spoil(stored);
  const Verdict verdict = check(stored);
  CHECK_FALSE(verdict.correct);
  return verdict.first_defect;
}

}  // namespace

TEST_CASE("all algorithms are correct and give all ranks the same bits; the canonical ones are these") {
  for (const Algorithm& algorithm : algorithms()) {
    const bool any_order = algorithm.name == "double_tree" ||
                           (algorithm.name == "ring" && algorithm.collective != Collective::allgather);
    for (Rank ranks = 1; ranks <= 40; ++ranks) {
      for (const Rank root : {Rank{0}, ranks - 1}) {
        const Verdict verdict = check(algorithm, ranks, root, algorithm.radices.back());
        INFO(name_of(algorithm.collective)
             << " " << algorithm.name << " " << ranks << ": " << verdict.first_defect);
        CHECK(verdict.correct);
        CHECK(verdict.agrees);
        CHECK(verdict.canonical ==
              (!any_order || ranks <= 2 || (algorithm.name == "double_tree" && ranks <= 2)));
      }
    }
  }
}

TEST_CASE("rounds can be asked for in any order, any number of times") {
  base::Random random(4);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Rank ranks : {2, 7, 12}) {
      const Generated schedule(algorithm, ranks, 1);
      const Stored in_order(schedule);
      Sink sink;
      for (int i = 0; i < 300; ++i) {
        const auto rank = static_cast<Rank>(random.below(static_cast<std::uint64_t>(ranks)));
        const auto strand = static_cast<std::uint32_t>(random.below(schedule.strands()));
        const std::uint32_t rounds = schedule.rounds(rank, strand);
        if (rounds == 0) continue;
        const auto round = static_cast<std::uint32_t>(random.below(rounds));
        schedule.emit(rank, strand, round, sink);
        const auto& expected = in_order.programs[static_cast<std::size_t>(rank)][strand][round];
        CHECK(std::equal(sink.steps().begin(), sink.steps().end(), expected.begin(), expected.end()));
      }
    }
  }
}

TEST_CASE("every algorithm of the table names its source and can be found by its name") {
  for (const Algorithm& algorithm : algorithms()) {
    CHECK(algorithm.source.size() > 20);
    CHECK(find(algorithm.collective, algorithm.name)->emit == algorithm.emit);
    CHECK_FALSE(algorithm.radices.empty());
  }
  CHECK(find(Collective::allreduce, "nothing") == nullptr);
  CHECK_THROWS_AS(Generated(algorithms().front(), 4, 4), InvalidArgument);
  CHECK_THROWS_AS(Generated(algorithms().front(), 0), InvalidArgument);
}

TEST_CASE("defects are named with rank, round and blocks") {
  CHECK_THAT(defect_after(Collective::allreduce, "ring", 4,
                          [](Stored& s) { s.programs[2][0].back().erase(s.programs[2][0].back().begin()); }),
             ContainsSubstring("never ends"));
  CHECK_THAT(defect_after(Collective::allreduce, "ring", 4,
                          [](Stored& s) { s.programs[1][0][0][1].kind = Kind::recv; }),
             ContainsSubstring("as final to rank 1, but its sum is not complete"));
  CHECK_THAT(
      defect_after(Collective::allreduce, "direct", 3, [](Stored& s) { s.programs[0][0][0][0].peer = 0; }),
      ContainsSubstring("has peer 0"));
  CHECK_THAT(defect_after(Collective::allgather, "ring", 3,
                          [](Stored& s) {
                            s.programs[1][0][0][0].blocks = {2, 3};
                          }),
             ContainsSubstring("sends block 2 to rank 2 before it holds anything"));
  CHECK_THAT(defect_after(Collective::allreduce, "recursive_doubling", 4,
                          [](Stored& s) {
                            for (auto& program : s.programs) program[0].push_back(program[0].back());
                          }),
             ContainsSubstring("gets a contribution twice"));
  CHECK_THAT(defect_after(Collective::reduce, "direct", 3,
                          [](Stored& s) {
                            s.programs[0][0][0].erase(s.programs[0][0][0].begin());
                            s.programs[1][0][0].clear();
                          }),
             ContainsSubstring("without the contribution of rank 1"));
  CHECK_THAT(defect_after(Collective::allreduce, "double_tree", 4,
                          [](Stored& s) {
                            s.programs[0][0][0][0].blocks = {1, 2};
                          }),
             ContainsSubstring("strand"));
  CHECK_THAT(defect_after(Collective::allreduce, "halving_doubling", 4,
                          [](Stored& s) { s.programs[3][0][0][0].blocks.last += 5; }),
             ContainsSubstring("rank 3 strand 0 round 0"));
}

TEST_CASE("zipped into one strand the two trees wait for each other: the checker finds the circle") {
  // Sends of both trees in one round, as two programs in lock step would have them.
  Stored zipped(Generated(algorithm_of(Collective::allreduce, "double_tree"), 6));
  for (auto& program : zipped.programs) {
    for (std::size_t round = 0; round < program[0].size(); ++round) {
      auto& target = program[0][round];
      target.insert(target.end(), program[1][round].begin(), program[1][round].end());
      program[1][round].clear();
    }
  }
  const Verdict verdict = check(zipped);
  CHECK_FALSE(verdict.correct);
}
