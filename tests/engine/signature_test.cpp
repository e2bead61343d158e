#include "engine/signature.hpp"

#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::engine;
using Catch::Matchers::StartsWith;

namespace {

const Request base_request{.count = 12, .type = DType::f32, .op = Op::sum, .name = "conv1.weight"};

}  // namespace

TEST_CASE("every field that ranks must share changes the signature, and nothing else does") {
  const auto reference = signature_of(base_request);
  std::vector<Request> others(9, base_request);
  others[0].collective = schedule::Collective::reduce;
  others[1].count = 13;
  others[2].type = DType::i32;
  others[3].op = Op::max;
  others[4].root = 1;
  others[5].prescale = 0.5;
  others[6].any_order = true;
  others[7].algorithm = "ring";
  others[8].name = "conv1.weighT";
  for (const Request& other : others) CHECK_FALSE(signature_of(other) == reference);
  const std::array<std::size_t, 2> counts{5, 7};
  const std::array<std::size_t, 2> turned{7, 5};
  Request uneven = base_request;
  uneven.counts = counts;
  Request uneven_too = base_request;
  uneven_too.counts = turned;
  CHECK_FALSE(signature_of(uneven) == signature_of(uneven_too));
  Request elsewhere = base_request;
  std::array<float, 12> memory{};
  elsewhere.input = memory.data();
  elsewhere.output = memory.data();
  CHECK(signature_of(elsewhere) == reference);
}

TEST_CASE("long names differ beyond what is shown of them") {
  Request first = base_request;
  Request second = base_request;
  first.name = "a.very.long.name.of.layer.1";
  second.name = "a.very.long.name.of.layer.2";
  CHECK_FALSE(signature_of(first) == signature_of(second));
  CHECK_THAT(describe(signature_of(first)), StartsWith("allreduce sum of 12 f32 'a.very.long.name' ["));
}

TEST_CASE("a log numbers calls and tells whether the ones before were the same") {
  CallLog here;
  CallLog there;
  Request other = base_request;
  other.count = 13;
  CHECK(here.add(base_request) == 0);
  CHECK(there.add(other) == 0);
  CHECK(here.add(base_request) == 1);
  CHECK(there.add(base_request) == 1);
  CHECK_THAT(difference(here.at(0), there.at(0)), StartsWith("allreduce sum of 13 f32"));
  CHECK_THAT(difference(here.at(1), there.at(1)), ContainsSubstring("an earlier one differs"));
  CHECK(here.knows(0));
  CHECK_FALSE(here.knows(2));
  for (int i = 0; i < 200; ++i) here.add(base_request);
  CHECK_FALSE(here.knows(0));
  CHECK(here.knows(201));
}
