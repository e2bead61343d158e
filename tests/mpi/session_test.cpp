#include "tutti/session.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace tutti;

TEST_CASE("a session takes MPI as it finds it and says what it found") {
  Session session;
  CHECK_FALSE(session.info().initialized_mpi);
  CHECK_FALSE(session.info().mpi_library.empty());
  CHECK_FALSE(session.info().thread_level.empty());
  CHECK_FALSE(session.info().progress_reason.empty());
}

TEST_CASE("sessions may follow one another, and communicators may be split over MPI") {
  for (int round = 0; round < 3; ++round) {
    Session session;
    Communicator& world = session.world();
    Communicator part = world.split(world.rank() % 2, -world.rank());
    std::vector<std::int64_t> value{world.rank()};
    part.allreduce(std::span(value), Op::sum);
    std::int64_t expected = 0;
    for (Rank r = world.rank() % 2; r < world.size(); r += 2) expected += r;
    CHECK(value[0] == expected);
  }
}

TEST_CASE("a negative color on one rank is an error on every rank, and the communicator lives on") {
  Session session;
  Communicator& world = session.world();
  const Rank wrong = world.size() - 1;
  CHECK_THROWS_WITH(world.split(world.rank() == wrong ? -3 : 0),
                    ContainsSubstring("color -3 of rank " + std::to_string(wrong)));
  world.barrier();
}

TEST_CASE("a second session beside the first is refused, one after it is not") {
  {
    const Session session;
    CHECK_THROWS_WITH(Session(), ContainsSubstring("there is a session already in this process"));
  }
  CHECK_NOTHROW(Session());
}

TEST_CASE("a communicator may be split while others are busy") {
  Session session;
  Communicator& world = session.world();
  Communicator other = world.split(0);
  std::vector<float> data(100'000, 1.0F);
  // Rank 0 comes late to what the others have started before they split.
  Work early;
  if (world.rank() != 0) early = other.allreduce_async(std::span(data), Op::sum);
  Communicator part = world.split(world.rank() % 2);
  if (world.rank() == 0) early = other.allreduce_async(std::span(data), Op::sum);
  early.wait();
  CHECK(data.back() == static_cast<float>(world.size()));
  part.barrier();
}

TEST_CASE("asynchronous work over MPI completes in any order") {
  Session session;
  Communicator& world = session.world();
  std::vector<std::vector<float>> buffers;
  std::vector<Work> works;
  for (std::size_t i = 0; i < 100; ++i) buffers.emplace_back(1000 + i, static_cast<float>(world.rank()));
  for (auto& buffer : buffers) works.push_back(world.allreduce_async(std::span(buffer), Op::sum));
  const auto p = static_cast<float>(world.size());
  for (std::size_t i = works.size(); i-- > 0;) {
    works[i].wait();
    CHECK(buffers[i].back() == p * (p - 1) / 2);
  }
}
