#include "engine/overlap.hpp"

#include <array>

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::engine;
using schedule::Collective;

TEST_CASE("buffers are the same or apart; anything between is an error that says so") {
  std::array<float, 64> memory{};
  Request request{
      .collective = Collective::allreduce, .input = memory.data(), .output = memory.data(), .count = 16};
  CHECK(buffer_problem(request, 0, 2).empty());
  request.output = memory.data() + 16;
  CHECK(buffer_problem(request, 0, 2).empty());
  for (const std::size_t shift : {1U, 8U, 15U}) {
    request.output = memory.data() + shift;
    CHECK_THAT(buffer_problem(request, 0, 2),
               ContainsSubstring("input") && ContainsSubstring("overlap in part"));
    request.input = memory.data() + 2 * shift;
    CHECK_THAT(buffer_problem(request, 0, 2),
               ContainsSubstring("overlap") || ContainsSubstring("null pointer"));
    request.input = memory.data();
  }
}

TEST_CASE("in place means this rank's own block for reduce_scatter and allgather") {
  std::array<float, 64> memory{};
  Request scatter{.collective = Collective::reduce_scatter,
                  .input = memory.data(),
                  .output = memory.data() + 32,
                  .count = 16};
  CHECK(buffer_problem(scatter, 2, 4).empty());
  CHECK_THAT(buffer_problem(scatter, 1, 4),
             ContainsSubstring("overlap") || ContainsSubstring("null pointer"));
  Request gather{
      .collective = Collective::allgather, .input = memory.data() + 16, .output = memory.data(), .count = 16};
  CHECK(buffer_problem(gather, 1, 4).empty());
  CHECK_THAT(buffer_problem(gather, 0, 4), ContainsSubstring("overlap") || ContainsSubstring("null pointer"));
}

TEST_CASE("null pointers are allowed for no elements only") {
  Request request{.collective = Collective::allreduce, .count = 0};
  CHECK(buffer_problem(request, 0, 2).empty());
  request.count = 1;
  CHECK_THAT(buffer_problem(request, 0, 2), ContainsSubstring("null pointer"));
  float value = 0;
  Request reduce{.collective = Collective::reduce, .input = &value, .count = 1, .root = 1};
  CHECK(buffer_problem(reduce, 0, 2).empty());  // no output where there is no result
  CHECK_THAT(buffer_problem(reduce, 1, 2), ContainsSubstring("overlap") || ContainsSubstring("null pointer"));
}
