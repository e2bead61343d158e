#include <fmt/format.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "conformance/cases.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::conformance;

namespace {

/// Runs cases on a local group; the problems of all ranks, at most a handful.
std::vector<std::string> problems_of(Rank ranks, const engine::LocalOptions& options,
                                     const std::vector<Case>& cases) {
  std::mutex mutex;
  std::vector<std::string> problems;
  try {
    engine::run_local(ranks, options, [&](Communicator& world) {
      for (const Case& test : cases) {
        const std::string problem = run_case(world, test);
        const std::scoped_lock lock(mutex);
        if (!problem.empty() && problems.size() < 5) problems.push_back(problem);
      }
    });
  } catch (const std::exception& error) {
    problems.emplace_back(error.what());
  }
  return problems;
}

engine::LocalOptions options_of(base::Random& random) {
  engine::LocalOptions options;
  options.protocol = random.below(2) == 0 ? transport::Protocol::eager : transport::Protocol::rendezvous;
  options.background_thread = random.below(3) == 0;
  options.faults.delay_turns = random.below(2) == 0 ? 0 : 3;
  options.faults.seed = random();
  if (random.below(4) == 0) options.link = base::parse_link("10gbit,20us,jitter=50us,burst=4K", "link");
  constexpr std::uint64_t sizes[] = {64, 1000, 4096, 1 << 20};
  options.core.segment_bytes = sizes[random.below(4)];
  options.core.segments_in_flight = static_cast<std::uint32_t>(1 + random.below(4));
  options.core.timeout = Seconds(60);
  return options;
}

}  // namespace

TEST_CASE("every collective, algorithm, type and op gives the reference's bits, eager and rendezvous") {
  for (const Rank ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}) {
    for (const auto protocol : {transport::Protocol::eager, transport::Protocol::rendezvous}) {
      engine::LocalOptions options{.protocol = protocol};
      options.core.segment_bytes = 2048;
      options.core.timeout = Seconds(60);
      const auto problems = problems_of(ranks, options, systematic_cases(ranks));
      INFO(fmt::format("{}", fmt::join(problems, "\n")));
      CHECK(problems.empty());
    }
  }
}

TEST_CASE("ranks that share memory get the reference's bits, whatever the buffers and the sizes of pieces") {
  std::size_t run = 0;
  for (std::uint64_t group = 1; group <= 40; ++group) {
    base::Random random(group, 12);
    const auto ranks = static_cast<Rank>(2 + random.below(9));
    auto options = options_of(random);
    options.shared_memory = true;
    options.core.shared_cell = random.below(2) == 0 ? 4096 : 16384;
    std::vector<Case> cases;
    for (std::uint64_t i = 0; i < 50; ++i) cases.push_back(random_node_case(group * 1000 + i, ranks));
    const auto problems = problems_of(ranks, options, cases);
    INFO(fmt::format("group {}: {}", group, fmt::join(problems, "\n")));
    CHECK(problems.empty());
    run += cases.size();
  }
  fmt::print("differential test in shared memory: {} random cases run\n", run);
}

TEST_CASE("random calls agree with the reference") {
  std::size_t run = 0;
  for (std::uint64_t group = 1; group <= 60; ++group) {
    base::Random random(group, 11);
    const auto ranks = static_cast<Rank>(1 + random.below(9));
    const auto options = options_of(random);
    std::vector<Case> cases;
    for (std::uint64_t i = 0; i < 50; ++i) cases.push_back(random_case(group * 1000 + i, ranks));
    const auto problems = problems_of(ranks, options, cases);
    INFO(fmt::format("group {}: {}", group, fmt::join(problems, "\n")));
    CHECK(problems.empty());
    run += cases.size();
  }
  fmt::print("differential test: {} random cases run\n", run);
}

TEST_CASE("several nodes, even or not, give the reference's bits") {
  const std::vector<std::vector<std::int32_t>> layouts{{0, 0, 2, 2},
                                                       {0, 0, 2, 2, 4, 4},
                                                       {0, 0, 0, 0, 4, 4, 4, 4},
                                                       {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8},
                                                       {0, 0, 2, 2, 4, 4, 6, 6, 8, 8},
                                                       {0, 1, 2},
                                                       {0, 0, 0, 3},
                                                       {0, 0, 0, 0, 0, 5, 5, 5},
                                                       {0, 0, 0, 3, 3, 3},
                                                       {0, 1, 0, 1}};
  std::size_t run = 0;
  for (const auto& nodes : layouts) {
    for (std::uint64_t group = 1; group <= 3; ++group) {
      base::Random random(group, 13);
      auto options = options_of(random);
      options.shared_memory = true;
      options.nodes = nodes;
      options.core.shared_cell = 4096;
      const auto ranks = static_cast<Rank>(nodes.size());
      std::vector<Case> cases;
      for (std::uint64_t i = 0; i < 40; ++i) {
        cases.push_back(random_node_case(group * 5000 + i, ranks));
        // Mostly what goes over the hierarchy, also in several segments.
        if (i % 2 == 0) cases.back().collective = schedule::Collective::allreduce;
        if (i == 0 && group == 1) cases.back().count = 600'001;
      }
      const auto problems = problems_of(ranks, options, cases);
      INFO(fmt::format("nodes {}: {}", fmt::join(nodes, ","), fmt::join(problems, "\n")));
      CHECK(problems.empty());
      run += cases.size();
    }
  }
  fmt::print("differential test over nodes: {} random cases run\n", run);
}
