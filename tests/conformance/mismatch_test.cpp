#include <fmt/format.h>

#include <mutex>
#include <string>

#include "conformance/mismatch.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::conformance;

TEST_CASE("ranks that call different operations are told so, on every rank") {
  for (const Rank ranks : {2, 3, 4, 5, 8}) {
    for (const int way : {0, 1, 2, 3}) {
      const bool over_nodes = way == 3;
      if (over_nodes && ranks != 4 && ranks != 8) continue;
      std::mutex mutex;
      std::string problems;
      engine::LocalOptions options;
      options.protocol = way == 0 ? transport::Protocol::eager : transport::Protocol::rendezvous;
      options.shared_memory = way >= 2;
      for (Rank r = 0; over_nodes && r < ranks; ++r) options.nodes.push_back(r / (ranks / 2));
      options.core.timeout = Seconds(20);
      engine::run_local(ranks, options, [&](Communicator& world) {
        for (std::size_t number = 0; number < mismatches(); ++number) {
          const Rank odd = static_cast<Rank>(number) % world.size();
          Communicator part = world.split(0, world.rank());
          const std::string problem = run_mismatch(part, number, odd);
          world.barrier();
          const std::scoped_lock lock(mutex);
          if (!problem.empty()) problems += problem + "\n";
        }
      });
      INFO(problems);
      CHECK(problems.empty());
    }
  }
}
