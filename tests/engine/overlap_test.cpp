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
  CHECK_NOTHROW(check_buffers(request, 0, 2, "here"));
  request.output = memory.data() + 16;
  CHECK_NOTHROW(check_buffers(request, 0, 2, "here"));
  for (const std::size_t shift : {1U, 8U, 15U}) {
    request.output = memory.data() + shift;
    CHECK_THROWS_WITH(check_buffers(request, 0, 2, "here"),
                      ContainsSubstring("here: input") && ContainsSubstring("overlap in part"));
    request.input = memory.data() + 2 * shift;
    CHECK_THROWS_AS(check_buffers(request, 0, 2, "here"), InvalidArgument);
    request.input = memory.data();
  }
}

TEST_CASE("in place means this rank's own block for reduce_scatter and allgather") {
  std::array<float, 64> memory{};
  Request scatter{.collective = Collective::reduce_scatter,
                  .input = memory.data(),
                  .output = memory.data() + 32,
                  .count = 16};
  CHECK_NOTHROW(check_buffers(scatter, 2, 4, "here"));
  CHECK_THROWS_AS(check_buffers(scatter, 1, 4, "here"), InvalidArgument);
  Request gather{
      .collective = Collective::allgather, .input = memory.data() + 16, .output = memory.data(), .count = 16};
  CHECK_NOTHROW(check_buffers(gather, 1, 4, "here"));
  CHECK_THROWS_AS(check_buffers(gather, 0, 4, "here"), InvalidArgument);
}

TEST_CASE("null pointers are allowed for no elements only") {
  Request request{.collective = Collective::allreduce, .count = 0};
  CHECK_NOTHROW(check_buffers(request, 0, 2, "here"));
  request.count = 1;
  CHECK_THROWS_WITH(check_buffers(request, 0, 2, "here"), ContainsSubstring("null pointer"));
  float value = 0;
  Request reduce{.collective = Collective::reduce, .input = &value, .count = 1, .root = 1};
  CHECK_NOTHROW(check_buffers(reduce, 0, 2, "here"));  // no output where there is no result
  CHECK_THROWS_AS(check_buffers(reduce, 1, 2, "here"), InvalidArgument);
}
