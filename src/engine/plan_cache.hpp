#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "engine/plan.hpp"
#include "engine/request.hpp"

namespace tutti::engine {

/// Compiled plans, each under everything that it and the choice of its algorithm depended on, so that a
/// repeated call does no choosing. The least recently used one goes first.
class PlanCache {
 public:
  std::shared_ptr<Plan> find(const Request& request, bool in_place) {
    const auto known = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.serves(request, in_place); });
    if (known == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, known);
    return entries_.front().plan;
  }

  void insert(const Request& request, bool in_place, std::shared_ptr<Plan> plan) {
    Entry entry{request,
                {request.counts.begin(), request.counts.end()},
                std::string(request.algorithm),
                in_place,
                std::move(plan)};
    entries_.push_front(std::move(entry));
    if (entries_.size() > limit) entries_.pop_back();
  }

 private:
  static constexpr std::size_t limit = 256;

  struct Entry {
    Request request;  ///< its pointers and views are of that call and not looked at
    std::vector<std::size_t> counts;
    std::string algorithm;
    bool in_place;
    std::shared_ptr<Plan> plan;

    bool serves(const Request& other, bool other_in_place) const {
      return request.collective == other.collective && request.count == other.count &&
             request.type == other.type && request.op == other.op && request.root == other.root &&
             request.prescale == other.prescale && request.any_order == other.any_order &&
             request.contributors == other.contributors && in_place == other_in_place &&
             algorithm == other.algorithm &&
             std::equal(counts.begin(), counts.end(), other.counts.begin(), other.counts.end());
    }
  };

  std::list<Entry> entries_;  ///< most recently used first
};

}  // namespace tutti::engine
