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
  CHECK(session.world().rank() < 3);
}

TEST_CASE("fails on rank 1", "[.fails]") {
  tutti::Session session;
  session.world().barrier();
  CHECK(session.world().rank() != 1);
}

TEST_CASE("fails alike on ranks 1 and 2", "[.alike]") {
  tutti::Session session;
  const bool good = session.world().rank() == 0;
  CHECK(good);
}

TEST_CASE("throws on rank 2", "[.throws]") {
  tutti::Session session;
  session.world().barrier();
  if (session.world().rank() == 2) throw std::runtime_error("thrown by rank 2");
}

TEST_CASE("rank 1 throws, the others wait for it", "[.deserts]") {
  tutti::Session session;
  if (session.world().rank() == 1) throw std::runtime_error("thrown by rank 1");
  session.world().barrier();
}

TEST_CASE("rank 1 never comes", "[.hangs]") {
  tutti::Session session;
  if (session.world().rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  session.world().barrier();
}
