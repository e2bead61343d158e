// What the test main does with a rank that fails, throws or hangs; run by ctest with the outcomes that must
// come.
#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/catch.hpp"
#include "tutti/session.hpp"

TEST_CASE("passes everywhere", "[.passes]") {
  tutti::Session session;
  session.world().barrier();
  CHECK(session.world().size() == 3);
}

TEST_CASE("fails on rank 1", "[.fails]") {
  tutti::Session session;
  session.world().barrier();
  CHECK(session.world().rank() != 1);
}

TEST_CASE("throws on rank 2", "[.throws]") {
  tutti::Session session;
  session.world().barrier();
  if (session.world().rank() == 2) throw std::runtime_error("thrown by rank 2");
}

TEST_CASE("rank 1 never comes", "[.hangs]") {
  tutti::Session session;
  if (session.world().rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  session.world().barrier();
}
