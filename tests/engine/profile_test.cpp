#include "engine/profile.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/communicator_state.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::engine;
using schedule::Collective;

namespace {

std::string with_rules(const std::string& rules) {
  return R"({"tutti_profile": 1, "machine": "here", "rules": [)" + rules + "]}";
}

/// What `ranks` ranks that share no memory choose for a call, by a profile of these rules.
std::string chosen(const std::string& rules, const Request& request, Rank ranks = 3) {
  LocalOptions options{.shared_memory = true, .nodes = {}};
  for (Rank r = 0; r < ranks; ++r) options.nodes.push_back(r);
  options.profile = std::make_shared<Profile>(Profile::parse(with_rules(rules), "test"));
  std::string text;
  run_local(ranks, options, [&](Communicator& world) {
    if (world.rank() == 0) {
      const auto [choice, rule] = world.state().route(request);
      text = rule == nullptr ? "no rule" : text_of(choice);
    }
    world.barrier();
  });
  return text;
}

Request call_of(std::size_t count, DType type = DType::f32, bool any_order = false) {
  return {.count = count, .type = type, .any_order = any_order};
}

}  // namespace

TEST_CASE("choices as text") {
  for (const char* text : {"node", "hierarchy", "mpi", "ring", "double_tree:segment=65536:flight=4"})
    CHECK(text_of(parse_choice(Collective::allreduce, text)) == text);
  CHECK(text_of(parse_choice(Collective::broadcast, "binomial:radix=4")) == "binomial:radix=4");
  CHECK(text_of(parse_choice(Collective::broadcast, "binomial:radix=2")) == "binomial");
  CHECK(text_of(parse_choice(Collective::allreduce, "ring:segment=64K")) == "ring:segment=65536");
  for (const char* text : {"rung", "ring:", "ring:x=1", "ring:radix=3", "ring:flight=0", "ring:flight=65",
                           "mpi:flight=1", "ring:segment=many", "binomial"})
    CHECK_THROWS_AS(parse_choice(Collective::allreduce, text), InvalidArgument);
}

TEST_CASE("a profile survives being written and read") {
  Profile profile{.machine = "a \"machine\"", .path = {}, .rules = {}, .warnings = {}};
  profile.local = schedule::Link{1e-6, 2e-10, 3e-11};
  profile.memory = schedule::Link{2e-7, 1e-10, 3e-11};
  profile.rules.push_back({.collective = Collective::broadcast,
                           .ranks = 4,
                           .nodes = 2,
                           .any_order = true,
                           .types = {DType::bf16, DType::i8},
                           .ops = {Op::max},
                           .from = 17,
                           .to = 4711,
                           .use = parse_choice(Collective::broadcast, "binomial:radix=8"),
                           .seconds = 0.25});
  profile.rules.push_back({.use = {.path = Path::library}});
  const Profile read = Profile::parse(profile.to_json(), "there");
  CHECK(read.to_json() == profile.to_json());
  CHECK(read.path == "there");
  CHECK(read.warnings.empty());
  CHECK(read.local->seconds_per_byte == 2e-10);
  CHECK_FALSE(read.remote);
  CHECK(read.rules[0].use == profile.rules[0].use);
  CHECK(read.rules[1].to == ~std::uint64_t{0});
}

TEST_CASE("what is no profile is refused, and a rule that is not understood is left out") {
  for (const char* text :
       {"", "{", "[]", R"({"tutti_profile": 2, "machine": "here", "rules": []})",
        R"({"machine": "here", "rules": []})", R"({"tutti_profile": 1, "machine": "here"})",
        R"({"tutti_profile": 1, "machine": 5, "rules": []})",
        R"({"tutti_profile": 1, "machine": "here", "rules": [], "links": {"local": {"latency_s": 1}}})",
        R"({"tutti_profile": 1, "machine": "here", "rules": [], "links": {"local":
            {"latency_s": -1, "seconds_per_byte": 1e-10, "reduce_seconds_per_byte": 1e-10}}})"})
    CHECK_THROWS_WITH(Profile::parse(text, "file.json"),
                      ContainsSubstring("'file.json' is no profile of tutti"));
  const std::string good = R"({"collective": "allreduce", "use": "ring"})";
  for (const char* bad :
       {R"({"collective": "allreduce"})", R"({"use": "ring"})", R"({"collective": "scan", "use": "ring"})",
        R"({"collective": "allreduce", "use": "rung"})",
        R"({"collective": "allreduce", "use": "ring", "color": 3})",
        R"({"collective": "allreduce", "use": "ring", "from": 9, "to": 8})",
        R"({"collective": "allreduce", "use": "ring", "types": ["f17"]})",
        R"({"collective": "allreduce", "use": "ring", "order": "some"})", "17"}) {
    const Profile profile = Profile::parse(with_rules(good + "," + bad + "," + good), "file.json");
    CHECK(profile.rules.size() == 2);
    REQUIRE(profile.warnings.size() == 1);
    CHECK_THAT(profile.warnings[0], ContainsSubstring("'file.json': rule 2 is left out"));
  }
}

TEST_CASE("the first rule that fits is taken") {
  const std::string rules = R"({"collective": "allreduce", "to": 1000, "use": "one_shot"},
      {"collective": "allreduce", "from": 900, "to": 5000, "use": "direct"},
      {"collective": "reduce", "use": "binomial"},
      {"collective": "allreduce", "types": ["i32"], "use": "ring"},
      {"collective": "allreduce", "ranks": 2, "use": "recursive_doubling"},
      {"collective": "allreduce", "order": "any", "use": "double_tree"})";
  CHECK(chosen(rules, call_of(1)) == "one_shot");
  CHECK(chosen(rules, call_of(250)) == "one_shot");
  CHECK(chosen(rules, call_of(251)) == "direct");
  CHECK(chosen(rules, call_of(1250)) == "direct");
  CHECK(chosen(rules, call_of(1251)) == "no rule");
  CHECK(chosen(rules, call_of(2000, DType::i32)) == "ring");
  CHECK(chosen(rules, call_of(2000, DType::f64, true)) == "double_tree");
  CHECK(chosen(rules, call_of(2000), 2) == "recursive_doubling");
  CHECK(chosen(rules, call_of(0)) == "no rule");
}

TEST_CASE("a rule that may not or cannot be followed is passed over") {
  const std::string ring = R"({"collective": "allreduce", "use": "ring"})";
  CHECK(chosen(ring, call_of(100)) == "no rule");  // another order than the canonical one
  CHECK(chosen(ring, call_of(100, DType::f32, true)) == "ring");
  CHECK(chosen(ring, call_of(100, DType::i8)) == "ring");
  CHECK(chosen(ring, call_of(100), 2) == "ring");
  const auto use = [](const std::string& name) {
    return R"({"collective": "allreduce", "use": ")" + name + "\"}";
  };
  CHECK(chosen(use("halving_doubling") + "," + ring, call_of(9, DType::i8)) == "halving_doubling");
  // No node, no hierarchy, no MPI below.
  for (const char* way : {"node", "hierarchy", "mpi"})
    CHECK(chosen(use(way) + "," + use("one_shot"), call_of(9)) == "one_shot");
}

TEST_CASE("results by a profile have the same bits") {
  LocalOptions options{.shared_memory = true, .nodes = {0, 1, 2}};
  options.profile = std::make_shared<Profile>(Profile::parse(
      with_rules(R"({"collective": "allreduce", "use": "direct:segment=64:flight=3"})"), "test"));
  std::vector<float> expected;
  for (const bool tuned : {false, true}) {
    LocalOptions these = options;
    if (!tuned) these.profile = nullptr;
    run_local(3, these, [&](Communicator& world) {
      std::vector<float> data(1000);
      for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = 1.0F / static_cast<float>(i + 1 + 7 * static_cast<std::size_t>(world.rank()));
      world.allreduce(std::span(data), Op::average);
      if (world.rank() != 0) return;
      if (expected.empty()) expected = data;
      CHECK(data == expected);
    });
  }
}
