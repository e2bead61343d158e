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
  // One in four is the same by chance.
  CHECK(pattern.wrong_copy(data, 0, 4) > 1300);
  CHECK(pattern.wrong_copy(data, 1, 3) > 1300);
}

TEST_CASE("a stale, shifted or foreign result is wrong, at every rank count") {
  for (const Rank ranks : {2, 3, 4, 5, 6, 7, 8, 12, 16}) {
    const Pattern pattern(DType::f32, Op::sum, ranks);
    constexpr std::size_t count = 8192;
    std::vector<float> result(count, 0.0F);
    std::vector<float> part(count);
    for (Rank rank = 0; rank < ranks; ++rank) {
      pattern.fill(std::as_writable_bytes(std::span(part)), rank, 5);
      for (std::size_t i = 0; i < count; ++i) result[i] += part[i];
    }
    const auto bytes = std::as_bytes(std::span(result));
    CHECK(pattern.wrong_sum(bytes, 5) == 0);
    for (const std::uint64_t other : {4U, 6U, 7U}) CHECK(pattern.wrong_sum(bytes, other) > count / 2);
    for (const std::size_t shift : {1U, 4U, 16U, 64U, 1024U, 4096U})
      CHECK(pattern.wrong_part(bytes, 5, shift) > count / 2);
    pattern.fill(std::as_writable_bytes(std::span(part)), 0, 5);
    for (Rank rank = 1; rank < ranks; ++rank)
      CHECK(pattern.wrong_copy(std::as_bytes(std::span(part)), rank, 5) > count / 2);
  }
}

TEST_CASE("a part of a result is compared from where it starts") {
  const Pattern pattern(DType::i32, Op::sum, 1);
  std::vector<std::byte> data(12000);
  pattern.fill(data, 0, 0);
  CHECK(pattern.wrong_part(std::span(data).subspan(4 * 777), 0, 777) == 0);
  CHECK(pattern.wrong_part(std::span(data).subspan(4 * 777), 0, 778) > 0);
}
