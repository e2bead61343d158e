#include "cuda/device.hpp"

#include <set>

#include "support/catch.hpp"
#include "tutti_config.hpp"

using namespace tutti::cuda;

TEST_CASE("every answer that means no CUDA has a reason of its own") {
  std::set<std::string> reasons;
  for (const int error : {34, 35, 46, 100, 101, 802, 803, 999}) reasons.insert(reason_of(error));
  CHECK(reasons.size() == 8);
  CHECK_FALSE(reasons.contains(reason_of(2)));
  CHECK_FALSE(reason_of(2).empty());
}

TEST_CASE("a query finds devices or the reason why there are none, with or without a driver") {
  const Query found = query();
  CHECK(found.built == (TUTTI_HAVE_CUDA == 1));
  CHECK((found.devices > 0) == found.reason.empty());
  CHECK((found.runtime_version > 0) == found.built);
  if (found.error != 0) CHECK_THAT(found.reason, ContainsSubstring(reason_of(found.error)));
  const Query again = query();
  CHECK(again.devices == found.devices);
  CHECK(again.reason == found.reason);
}

TEST_CASE("what is there is told in one line") {
  const Query found = query();
  for (const std::string& line : {describe_cuda(), describe_nccl()}) {
    CHECK_FALSE(line.empty());
    CHECK(line.find('\n') == std::string::npos);
  }
  if (found.devices == 0) CHECK_THAT(describe_cuda(), ContainsSubstring(found.reason));
  if (TUTTI_HAVE_NCCL == 0) CHECK(describe_nccl() == "built without NCCL");
}
