// Beyond 2^31 bytes and elements: counts that an int cannot hold.
#include <cstdint>
#include <vector>

#include "support/catch.hpp"
#include "transport/mpi.hpp"
#include "tutti/session.hpp"

using namespace tutti;

namespace {

constexpr std::size_t large = (std::size_t{1} << 31U) + 3;

std::uint8_t byte_at(std::size_t i) {
  return static_cast<std::uint8_t>(i * 2654435761U >> 24U);
}

}  // namespace

TEST_CASE("one message above 2^31 bytes goes in pieces and arrives whole") {
  transport::MpiEnvironment environment(nullptr, nullptr);
  const auto world = environment.world();
  std::vector<std::uint8_t> data(large);
  if (world->rank() > 1) return;
  if (world->rank() == 0) {
    for (std::size_t i = 0; i < large; ++i) data[i] = byte_at(i);
  }
  const auto ticket = world->rank() == 0 ? world->send(1, {}, nullptr, data.data(), large)
                                         : world->receive(0, {}, nullptr, data.data(), large);
  while (!world->test(ticket)) {
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < large; ++i) wrong += data[i] != byte_at(i) ? 1 : 0;
  CHECK(wrong == 0);
}

TEST_CASE("allreduce and broadcast of more than 2^31 elements") {
  Session session;
  Communicator& world = session.world();
  std::vector<std::uint8_t> data(large);
  for (std::size_t i = 0; i < large; ++i) data[i] = static_cast<std::uint8_t>(byte_at(i) + world.rank());
  world.allreduce(std::span(data), Op::max);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < large; ++i) {
    std::uint8_t expected = 0;
    for (Rank r = 0; r < world.size(); ++r)
      expected = std::max(expected, static_cast<std::uint8_t>(byte_at(i) + r));
    wrong += data[i] != expected ? 1 : 0;
  }
  CHECK(wrong == 0);
  if (world.rank() == 1) data[large - 1] = 77;
  world.broadcast(std::span(data), 1);
  CHECK(data[large - 1] == 77);
}
