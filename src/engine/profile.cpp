#include "engine/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/random.hpp"

namespace tutti::engine {

using nlohmann::ordered_json;
using schedule::Collective;

namespace {

Collective collective_from(const std::string& name) {
  for (const auto& algorithm : schedule::algorithms()) {
    if (schedule::name_of(algorithm.collective) == name) return algorithm.collective;
  }
  base::fail<InvalidArgument>("there is no collective '{}'", name);
}

Rule rule_from(const ordered_json& json) {
  static constexpr std::string_view known[] = {"collective", "ranks", "nodes", "order",   "types",  "ops",
                                               "from",       "to",    "use",   "seconds", "comment"};
  for (const auto& [key, value] : json.items()) {
    base::require(std::ranges::find(known, key) != std::end(known), "unknown key '{}'", key);
  }
  Rule rule;
  rule.collective = collective_from(json.at("collective").get<std::string>());
  rule.ranks = json.value("ranks", 0);
  rule.nodes = json.value("nodes", 0);
  if (json.contains("order")) {
    const auto order = json.at("order").get<std::string>();
    base::require(order == "any" || order == "canonical", "order '{}': expected any or canonical", order);
    rule.any_order = order == "any";
  }
  for (const auto& name : json.value("types", std::vector<std::string>{}))
    rule.types.push_back(dtype_from(name));
  for (const auto& name : json.value("ops", std::vector<std::string>{})) rule.ops.push_back(op_from(name));
  rule.from = json.value("from", rule.from);
  rule.to = json.value("to", rule.to);
  base::require(rule.from <= rule.to, "from {} bytes to {}: nothing is between", rule.from, rule.to);
  rule.use = parse_choice(rule.collective, json.at("use").get<std::string>());
  rule.seconds = json.value("seconds", 0.0);
  return rule;
}

ordered_json json_of(const Rule& rule) {
  ordered_json json;
  json["collective"] = schedule::name_of(rule.collective);
  if (rule.ranks != 0) json["ranks"] = rule.ranks;
  if (rule.nodes != 0) json["nodes"] = rule.nodes;
  if (rule.any_order) json["order"] = *rule.any_order ? "any" : "canonical";
  for (const DType type : rule.types) json["types"].push_back(name_of(type));
  for (const Op op : rule.ops) json["ops"].push_back(name_of(op));
  json["from"] = rule.from;
  json["to"] = rule.to;
  json["use"] = text_of(rule.use);
  if (rule.seconds != 0) json["seconds"] = rule.seconds;
  return json;
}

std::optional<schedule::Link> link_from(const ordered_json& json, const char* name) {
  if (!json.contains("links") || !json.at("links").contains(name)) return std::nullopt;
  const auto& link = json.at("links").at(name);
  const schedule::Link result{.latency_s = link.at("latency_s"),
                              .seconds_per_byte = link.at("seconds_per_byte"),
                              .reduce_seconds_per_byte = link.at("reduce_seconds_per_byte")};
  const auto sane = [](double value, double most) { return value > 0 && value < most; };
  base::require(sane(result.latency_s, 10) && sane(result.seconds_per_byte, 1) &&
                    sane(result.reduce_seconds_per_byte, 1),
                "link '{}': every value must be above 0, and below 10 s or 1 s a byte", name);
  return result;
}

ordered_json json_of(const schedule::Link& link) {
  return {{"latency_s", link.latency_s},
          {"seconds_per_byte", link.seconds_per_byte},
          {"reduce_seconds_per_byte", link.reduce_seconds_per_byte}};
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = base::mix(hash ^ static_cast<std::uint8_t>(c));
  return hash;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "unknown processor";
}

}  // namespace

bool Rule::matches(const Request& request, std::uint64_t bytes) const {
  if (request.collective != collective || bytes < from || bytes > to) return false;
  if (any_order && *any_order != request.any_order) return false;
  const auto among = [](const auto& list, auto value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  };
  return among(types, request.type) && (!schedule::adds(collective) || among(ops, request.op));
}

std::uint64_t message_bytes(const Request& request, Rank ranks) {
  const bool by_rank =
      request.collective == Collective::reduce_scatter || request.collective == Collective::allgather;
  const std::size_t copies = by_rank && request.counts.empty() ? static_cast<std::size_t>(ranks) : 1;
  return request.count * request.element_bytes() * copies;
}

Profile Profile::parse(std::string_view text, const std::string& path) {
  Profile profile{.machine = {}, .path = path, .hash = hash_of(text), .rules = {}, .warnings = {}};
  try {
    const auto json = ordered_json::parse(text);
    const int schema = json.at("tutti_profile").get<int>();
    base::require(schema == profile_schema, "it has schema {}, but this version reads {}; tune again", schema,
                  profile_schema);
    profile.machine = json.at("machine").get<std::string>();
    profile.local = link_from(json, "local");
    profile.remote = link_from(json, "remote");
    profile.memory = link_from(json, "memory");
    std::size_t number = 0;
    for (const auto& rule : json.at("rules")) {
      ++number;
      try {
        profile.rules.push_back(rule_from(rule));
      } catch (const std::exception& error) {
        profile.warnings.push_back(
            fmt::format("profile '{}': rule {} is left out: {}", path, number, error.what()));
      }
    }
  } catch (const std::exception& error) {
    base::fail<InvalidArgument>("'{}' is no profile of tutti: {}", path, error.what());
  }
  return profile;
}

std::string Profile::to_json() const {
  ordered_json json;
  json["tutti_profile"] = profile_schema;
  json["machine"] = machine;
  if (local) json["links"]["local"] = json_of(*local);
  if (remote) json["links"]["remote"] = json_of(*remote);
  if (memory) json["links"]["memory"] = json_of(*memory);
  json["rules"] = ordered_json::array();
  for (const Rule& rule : rules) json["rules"].push_back(json_of(rule));
  return json.dump(1) + "\n";
}

std::string fingerprint(const std::string& mpi_library) {
  return fmt::format("{}, {} cores, {}", processor(), base::installed_processors(), mpi_library);
}

std::string profile_path(const std::string& folder, const std::string& machine) {
  return fmt::format("{}/profile-{:016x}.json", folder, hash_of(machine));
}

}  // namespace tutti::engine
