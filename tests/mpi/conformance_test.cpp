#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conformance/cases.hpp"
#include "support/catch.hpp"
#include "tutti/session.hpp"

using namespace tutti;
using namespace tutti::conformance;

TEST_CASE("every collective, algorithm, type and op gives the reference's bits over MPI") {
  Session session;
  for (const Case& test : systematic_cases(session.world().size())) {
    const std::string problem = run_case(session.world(), test);
    INFO(problem);
    CHECK(problem.empty());
  }
}

TEST_CASE("random calls agree with the reference over MPI") {
  Session session;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const std::string problem = run_case(session.world(), random_case(seed * 31, session.world().size()));
    INFO(problem);
    CHECK(problem.empty());
  }
}

TEST_CASE("calls of random kinds in shared memory agree with the reference") {
  Session session;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const std::string problem =
        run_case(session.world(), random_node_case(seed * 37, session.world().size()));
    INFO(problem);
    CHECK(problem.empty());
  }
}

TEST_CASE("calls that the MPI library carries out agree with the reference") {
  Session session;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const std::string problem =
        run_case(session.world(), random_library_case(seed * 41, session.world().size()));
    INFO(problem);
    CHECK(problem.empty());
  }
}

TEST_CASE("several calls of the MPI library are on their way at once") {
  Session session;
  Communicator& world = session.world();
  Communicator other = world.split(0, 0);
  const CallOptions options{.order = Order::any, .algorithm = "mpi"};
  std::vector<std::vector<std::int32_t>> buffers;
  for (int i = 0; i < 12; ++i) buffers.emplace_back(1000 * (i % 3) + 1, i + world.rank());
  std::vector<Work> works;
  // The order between communicators is not the same on all ranks.
  for (int round = 0; round < 2; ++round) {
    const bool first = (world.rank() % 2 == 0) == (round == 0);
    for (std::size_t i = first ? 0 : 6; i < (first ? 6U : 12U); ++i) {
      Communicator& communicator = first ? world : other;
      works.push_back(communicator.allreduce_async(std::span(buffers[i]), Op::sum, options));
    }
  }
  for (Work& work : works) work.wait();
  const int p = world.size();
  for (int i = 0; i < 12; ++i) {
    CHECK(std::ranges::count(buffers[static_cast<std::size_t>(i)], i * p + p * (p - 1) / 2) ==
          1000 * (i % 3) + 1);
  }
}

TEST_CASE("a call that the MPI library cannot carry out says why") {
  Session session;
  std::vector<float> data(8, 1.0F);
  const auto call = [&](Op op, double scale) {
    session.world().allreduce(std::span(data), op, {.prescale = scale, .algorithm = "mpi"});
  };
  CHECK_THROWS_WITH(call(Op::max, 1.0), ContainsSubstring("NaN"));
  CHECK_THROWS_WITH(call(Op::sum, 0.5), ContainsSubstring("does not scale"));
  if (session.world().size() > 2) CHECK_THROWS_WITH(call(Op::sum, 1.0), ContainsSubstring("canonical order"));
  // Nothing was numbered: the communicator goes on.
  session.world().allreduce(std::span(data), Op::sum);
  CHECK(data[0] == static_cast<float>(session.world().size()));
}

TEST_CASE("messages above the eager limits of MPI arrive whole") {
  Session session;
  for (const char* algorithm : {"ring", "recursive_doubling", "halving_doubling", "double_tree", "direct"}) {
    const Case test{.algorithm = algorithm, .count = 700'001, .in_place = false, .exact = true, .seed = 5};
    const std::string problem = run_case(session.world(), test);
    INFO(problem);
    CHECK(problem.empty());
  }
}
