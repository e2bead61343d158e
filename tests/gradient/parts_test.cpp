#include "gradient/parts.hpp"

#include <algorithm>

#include "compress/codec.hpp"
#include "support/catch.hpp"

using namespace tutti;
using gradient::coded_part_elements;
using gradient::parts_of;

namespace {

std::vector<exchange::Run> bucket_of(std::initializer_list<std::size_t> sizes) {
  std::vector<exchange::Run> bucket;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    const auto parameter = static_cast<std::uint32_t>(bucket.size());
    bucket.push_back({.parameter = parameter, .count = size, .size = size, .at = at});
    at += size;
  }
  return bucket;
}

std::size_t elements_of(const std::vector<exchange::Run>& runs) {
  std::size_t count = 0;
  for (const exchange::Run& run : runs) count += run.count;
  return count;
}

}  // namespace

TEST_CASE("parts of reencodable codecs: short, whole blocks, all of the bucket once, slices of each rank") {
  const auto codec = compress::make_codec("int8:block=64");
  const auto bucket = bucket_of({100, 3 * coded_part_elements + 17, 1, 5000});
  const auto parts = parts_of(bucket, *codec, 3);
  CHECK(parts.size() > 3);
  std::size_t next = 0;
  for (const auto& part : parts) {
    CHECK(elements_of(part.runs) <= coded_part_elements + 2 * codec->block());
    std::size_t in_slices = 0;
    REQUIRE(part.slices.size() == 3);
    for (const auto& slice : part.slices) in_slices += elements_of(slice);
    CHECK(in_slices == elements_of(part.runs));
    for (const exchange::Run& run : part.runs) {
      CHECK(run.at == next);
      CHECK(run.offset % codec->block() == 0);
      next = run.at + run.count;
    }
  }
  CHECK(next == elements_of(bucket));
}

TEST_CASE("parts of other codecs have whole parameters, the long ones alone") {
  const auto codec = compress::make_codec("topk");
  const auto bucket = bucket_of({100, 200, 3 * coded_part_elements, 5, coded_part_elements, 1});
  std::vector<std::size_t> parameters;
  for (const auto& part : parts_of(bucket, *codec, 3)) {
    CHECK(part.slices.empty());
    parameters.push_back(part.runs.size());
    CHECK(std::ranges::all_of(part.runs, [](const exchange::Run& run) { return run.count == run.size; }));
  }
  CHECK(parameters == std::vector<std::size_t>{2, 1, 1, 1, 1});
}
