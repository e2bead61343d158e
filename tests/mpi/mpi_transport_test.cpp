#include "conformance/mismatch.hpp"

#include <fmt/format.h>

#include "support/catch.hpp"
#include "tutti/session.hpp"

using namespace tutti;
using namespace tutti::conformance;

TEST_CASE("ranks that call different operations are told so, on every rank, and no memory is damaged") {
  Session session;
  Communicator& world = session.world();
  if (world.size() == 1) return;
  for (std::size_t number = 0; number < mismatches(); ++number) {
    const Rank odd = static_cast<Rank>(number) % world.size();
    Communicator part = world.split(0, world.rank());
    const std::string problem = run_mismatch(part, number, odd);
    INFO(problem);
    CHECK(problem.empty());
    world.barrier();
  }
}
