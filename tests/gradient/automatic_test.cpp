#include "gradient/automatic.hpp"

#include <atomic>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/local.hpp"
#include "gradient/cost.hpp"
#include "support/catch.hpp"
#include "tutti/reducer.hpp"

using namespace tutti;
using gradient::Candidate;
using gradient::Wire;

namespace {

std::vector<exchange::Run> matrix(std::size_t rows, std::size_t columns) {
  return {{.count = rows * columns, .size = rows * columns, .rows = rows}};
}

const Candidate& named(const std::vector<Candidate>& candidates, std::string_view name) {
  for (const Candidate& candidate : candidates) {
    if (candidate.text == name) return candidate;
  }
  throw InvalidArgument("no such candidate");
}

}  // namespace

TEST_CASE("error classes are read, and what is neither auto nor a codec is refused") {
  using compress::ErrorClass;
  CHECK(gradient::automatic_error("auto") == ErrorClass::cast);
  CHECK(gradient::automatic_error("auto:error=exact") == ErrorClass::exact);
  CHECK(gradient::automatic_error("auto:error=bounded") == ErrorClass::bounded);
  CHECK(gradient::automatic_error("auto:error=feedback") == ErrorClass::feedback);
  CHECK_FALSE(gradient::automatic_error("").has_value());
  CHECK_FALSE(gradient::automatic_error("int8:block=64").has_value());
  CHECK_THROWS_AS(gradient::automatic_error("auto:error=some"), InvalidArgument);
  CHECK_THROWS_AS(gradient::automatic_error("auto:speed=1"), InvalidArgument);
  CHECK_THROWS_AS(gradient::automatic_error("automatic"), InvalidArgument);
}

TEST_CASE("each error class has the candidates of those before it, and dense") {
  std::size_t before = 0;
  for (const auto error : {compress::ErrorClass::exact, compress::ErrorClass::cast,
                           compress::ErrorClass::bounded, compress::ErrorClass::feedback}) {
    const auto candidates = gradient::candidates_of(error);
    CHECK(candidates.size() > before);
    CHECK(candidates[0].codec == nullptr);
    for (const Candidate& candidate : candidates) {
      if (candidate.codec) CHECK(candidate.codec->error_class() <= error);
    }
    before = candidates.size();
  }
}

TEST_CASE("predictions: bytes where the wire is slow, work where it is fast") {
  auto candidates = gradient::candidates_of(compress::ErrorClass::feedback);
  for (Candidate& candidate : candidates) {
    if (!candidate.codec) continue;
    candidate.encode = 1e-9;
    candidate.decode = 1e-9;
    candidate.bytes = candidate.text == "topk"
                          ? 0.06
                          : static_cast<double>(candidate.codec->max_bytes(1 << 20)) / (1 << 20);
  }
  // 4 ranks: a ring takes 1.5 times the buffer.
  const Wire slow{.dense_latency = 1e-3,
                  .dense_per_byte = 1.5 / 1e7,
                  .message_latency = 1e-3,
                  .message_per_byte = 1 / 1e7};
  const Wire fast{
      .dense_latency = 1e-6, .dense_per_byte = 1e-11, .message_latency = 1e-6, .message_per_byte = 1e-11};
  const auto runs = matrix(1024, 1024);
  const auto time = [&](const Wire& wire, std::string_view name) {
    return gradient::predict(wire, named(candidates, name), 4, runs);
  };
  const double dense = time(slow, "dense");
  CHECK(dense == Approx(1e-3 + 1.5 * 4 * 1048576 / 1e7));
  CHECK(time(slow, "bf16") == Approx(dense / 2).epsilon(0.05));
  CHECK(time(slow, "int8") == Approx(dense / 4).epsilon(0.1));
  CHECK(time(slow, "topk") < dense / 12);
  CHECK(time(slow, "powersgd") < dense / 50);
  for (const Candidate& candidate : candidates) {
    if (candidate.codec) CHECK(gradient::predict(fast, candidate, 4, runs) > 5 * time(fast, "dense"));
  }
  // A vector is nothing that PowerSGD makes smaller.
  CHECK(gradient::predict(slow, named(candidates, "powersgd"), 4, matrix(1, 100'000)) > 0.06);
}

TEST_CASE("measured rates are there, the same on all ranks") {
  std::mutex mutex;
  std::vector<std::vector<double>> all;
  engine::run_local(2, {}, [&](Communicator& world) {
    auto candidates = gradient::candidates_of(compress::ErrorClass::feedback);
    const Wire wire = gradient::measure(world, candidates);
    std::vector<double> figures{wire.dense_latency, wire.dense_per_byte, wire.message_latency};
    for (const Candidate& candidate : candidates) {
      if (!candidate.codec) continue;
      figures.insert(figures.end(), {candidate.encode, candidate.decode, candidate.bytes});
    }
    figures.push_back(wire.message_per_byte);
    const std::scoped_lock lock(mutex);
    all.push_back(std::move(figures));
  });
  REQUIRE(all.size() == 2);
  CHECK(all[0] == all[1]);
  for (std::size_t i = 0; i + 1 < all[0].size(); ++i) CHECK(all[0][i] > 0);
}

TEST_CASE("a Reducer with codec=auto: right sums, one choice everywhere, a journal") {
  for (const std::string error : {"exact", "cast", "bounded", "feedback"}) {
    std::mutex mutex;
    std::string journal;
    std::vector<std::vector<float>> results;
    engine::LocalOptions local;
    local.nodes = {0, 1, 2};
    engine::run_local(3, local, [&](Communicator& world) {
      ReducerOptions options{
          .bucket_bytes = 30'000, .first_bucket_bytes = 10'000, .codec = "auto:error=" + error};
      options.journal = [&](std::string_view line) {
        base::require(world.rank() == 0, "a journal on rank {}", world.rank());
        journal += std::string(line) + "\n";
      };
      Reducer reducer(world,
                      {{.name = "a", .count = 64 * 200, .rows = 64},
                       {.name = "b", .count = 64},
                       {.name = "c", .count = 9000},
                       {.name = "tail", .count = 3, .exact = true}},
                      options);
      std::vector<double> sum(12'864);
      std::vector<float> last;
      // How many steps the race takes depends on their times: until rank 0 has written the choice.
      int steps = 0;
      for (int chosen = 0; chosen == 0 && steps < 5000; ++steps) {
        for (std::size_t i = 4; i-- > 0;) {
          for (float& x : reducer.gradient(i)) x = static_cast<float>(world.rank()) + static_cast<float>(i);
          reducer.ready(i);
        }
        reducer.finish();
        for (const float x : reducer.gradient(3)) base::require(x == 4.0F, "an exact parameter is {}", x);
        last.assign(reducer.gradient(0).begin(), reducer.gradient(0).end());
        last.insert(last.end(), reducer.gradient(1).begin(), reducer.gradient(1).end());
        for (std::size_t i = 0; i < last.size(); ++i) sum[i] += static_cast<double>(last[i]);
        if (steps % 50 != 49) continue;
        if (world.rank() == 0) chosen = journal.find("codecs chosen") != std::string::npos ? 1 : 0;
        world.broadcast(std::span<int>(&chosen, 1), 0);
      }
      // What is left out comes later, and is little beside all.
      const double off = std::abs(sum[77] / steps - 1);
      base::require(error == "feedback" ? off < 1 : off < 0.02, "the mean is off by {}", off);
      const std::scoped_lock lock(mutex);
      results.push_back(std::move(last));
    });
    INFO(error << "\n" << journal);
    REQUIRE(results.size() == 3);
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
    CHECK_THAT(journal, ContainsSubstring(R"("event":"codecs measured","step":1,"reason":"start")") &&
                            ContainsSubstring(R"("event":"codecs chosen")") &&
                            ContainsSubstring("predicted_gain_ms"));
    if (error == "exact") CHECK_THAT(journal, ContainsSubstring(R"("plan":"dense","buckets":["dense")"));
  }
}

TEST_CASE("one rank alone has nothing to choose") {
  engine::run_local(1, {}, [](Communicator& world) {
    ReducerOptions options{.codec = "auto:error=feedback"};
    Reducer reducer(world, {{.name = "a", .count = 100}}, options);
    for (int step = 0; step < 40; ++step) {
      for (float& x : reducer.gradient(0)) x = 1.1F;
      reducer.ready(0);
      reducer.finish();
      for (const float x : reducer.gradient(0)) base::require(x == 1.1F, "{}", x);
    }
  });
}
