#include "engine/overlap.hpp"

#include <fmt/format.h>

#include <functional>

namespace tutti::engine {

using schedule::Collective;

std::string buffer_problem(const Request& request, Rank rank, Rank ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  std::size_t in = request.count;
  std::size_t out = request.count;
  if (request.collective == Collective::reduce_scatter) in *= p;
  if (request.collective == Collective::allgather) {
    if (request.counts.empty()) {
      out *= p;
    } else {
      in = request.counts[static_cast<std::size_t>(rank)];
    }
  }
  if (request.collective == Collective::reduce && rank != request.root) out = 0;
  if (in != 0 && request.input == nullptr)
    return fmt::format("the input of {} elements is a null pointer", in);
  if (out != 0 && request.output == nullptr)
    return fmt::format("the output of {} elements is a null pointer", out);
  if (in == 0 || out == 0 || request.in_place(rank)) return {};
  const auto* input = static_cast<const char*>(request.input);
  const auto* output = static_cast<const char*>(request.output);
  // std::less: a total order even over unrelated arrays.
  const std::less<const char*> less;
  const bool apart = !less(input, output + out * request.element_bytes()) ||
                     !less(output, input + in * request.element_bytes());
  if (apart) return {};
  return fmt::format(
      "input ({} elements) and output ({} elements) overlap in part; use the same buffer (in place) or "
      "separate ones",
      in, out);
}

}  // namespace tutti::engine
