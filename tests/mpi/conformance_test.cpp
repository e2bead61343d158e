#include <fmt/format.h>

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

TEST_CASE("messages above the eager limits of MPI arrive whole") {
  Session session;
  for (const char* algorithm : {"ring", "recursive_doubling", "halving_doubling", "double_tree", "direct"}) {
    const Case test{.algorithm = algorithm, .count = 700'001, .in_place = false, .exact = true, .seed = 5};
    const std::string problem = run_case(session.world(), test);
    INFO(problem);
    CHECK(problem.empty());
  }
}
