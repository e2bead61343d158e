#include "bench/pattern.hpp"

#include <cstring>
#include <vector>

#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/communicator.hpp"

using namespace tutti;
using namespace tutti::bench;

TEST_CASE("results of every type and op are what a real reduction gives, and one wrong element is found") {
  for (std::size_t t = 0; t < dtype_count; ++t) {
    for (std::size_t o = 0; o < op_count; ++o) {
      const auto type = static_cast<DType>(t);
      const auto op = static_cast<Op>(o);
      engine::run_local(3, {}, [&](Communicator& world) {
        const Pattern pattern(type, op, 3);
        constexpr std::size_t count = 2500;
        std::vector<std::byte> data(count * size_of(type));
        pattern.fill(data, world.rank(), 7);
        world.allreduce(data.data(), data.data(), count, type, op);
        std::size_t wrong = pattern.wrong_sum(data, 7);
        data[1700 * size_of(type)] ^= std::byte{1};
        wrong += 100 * (pattern.wrong_sum(data, 7) - 1);
        if (wrong != 0) throw std::runtime_error(std::string(name_of(type)) + " " + std::string(name_of(op)));
      });
    }
  }
}

TEST_CASE("iterations that follow each other have other data, and so have ranks") {
  const Pattern pattern(DType::f32, Op::sum, 2);
  std::vector<std::byte> data(8192);
  pattern.fill(data, 0, 3);
  CHECK(pattern.wrong_copy(data, 0, 3) == 0);
  CHECK(pattern.wrong_copy(data, 0, 4) == 2048);
  CHECK(pattern.wrong_copy(data, 1, 3) == 2048);
}

TEST_CASE("a part of a result is compared from where it starts") {
  const Pattern pattern(DType::i32, Op::sum, 1);
  std::vector<std::byte> data(12000);
  pattern.fill(data, 0, 0);
  CHECK(pattern.wrong_part(std::span(data).subspan(4 * 777), 0, 777) == 0);
  CHECK(pattern.wrong_part(std::span(data).subspan(4 * 777), 0, 778) > 0);
}
