#include "schedule/verify.hpp"

#include "schedule/cost.hpp"
#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::schedule;

TEST_CASE("the sweep proves every algorithm for 1 to 128 ranks") {
  const Sweep sweep{.first = 1, .last = 128, .threads = 2};
  const auto proofs = verify(sweep);
  CHECK(proofs.size() == algorithms().size());
  for (const Proof& proof : proofs) {
    INFO(proof.algorithm->name << ": " << proof.first_defect);
    CHECK(proof.correct == proof.shapes);
    CHECK(proof.agrees == proof.shapes);
    CHECK(proof.shapes >= 128);
    CHECK(proof.steps > 0);
  }
}

TEST_CASE("a sweep can be narrowed, and nonsense is refused") {
  const auto proofs =
      verify({.first = 3, .last = 5, .collective = Collective::allreduce, .algorithm = "ring"});
  REQUIRE(proofs.size() == 1);
  CHECK(proofs[0].shapes == 3);
  CHECK(proofs[0].canonical == 0);
  CHECK_THAT(table_of(proofs, {.first = 3, .last = 5}),
             ContainsSubstring("ring") && ContainsSubstring("0 of 3"));
  CHECK_THROWS_AS(verify({.first = 5, .last = 3}), InvalidArgument);
  CHECK_THROWS_AS(verify({.first = 0, .last = 3}), InvalidArgument);
  CHECK_THROWS_WITH(verify({.algorithm = "nothing"}), ContainsSubstring("no algorithm 'nothing'"));
}

TEST_CASE("predicted times follow the model: rounds for short messages, bytes for long ones") {
  const Link link{.latency_s = 1e-6, .seconds_per_byte = 1e-9, .reduce_seconds_per_byte = 0};
  const auto seconds = [&](const char* name, Rank ranks, std::uint64_t bytes) {
    return predict(Generated(*find(Collective::allreduce, name), ranks), 0, bytes, link);
  };
  CHECK(seconds("recursive_doubling", 8, 0) == Approx(3e-6));
  CHECK(seconds("ring", 8, 0) == Approx(14e-6));
  CHECK(seconds("ring", 8, 8'000'000) == Approx(14e-6 + 14e-3).epsilon(1e-6));
  CHECK(seconds("recursive_doubling", 8, 8'000'000) == Approx(24e-3).epsilon(1e-3));
  CHECK(seconds("halving_doubling", 8, 8'000'000) == Approx(14e-3).epsilon(1e-3));
  CHECK(seconds("ring", 1, 1000) == 0);
}
