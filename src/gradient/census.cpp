#include "gradient/census.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <utility>

#include "base/error.hpp"

namespace tutti::gradient {

Census::Census(Communicator& communicator, std::vector<std::string> parameters, Missing missing, bool join)
    : communicator_(communicator),
      parameters_(std::move(parameters)),
      missing_(missing),
      join_(join),
      live_(communicator.size()),
      anywhere_(parameters_.size(), 1),
      counted_(std::make_unique<std::int32_t>(0)) {}

void Census::announce(bool live) {
  if (!join_ || announced_) return;
  announced_ = true;
  *counted_ = live ? 1 : 0;
  work_ = communicator_.allreduce_async(std::span(counted_.get(), 1), Op::sum, {.name = "ranks with data"});
}

Rank Census::count() {
  if (announced_) {
    work_.wait();
    live_ = *counted_;
  }
  return live_;
}

void Census::agree(const std::vector<std::uint8_t>& had, std::vector<std::uint8_t> gets) {
  if (missing_ == Missing::zero) return;
  anywhere_ = std::move(gets);
  communicator_.allreduce(std::span(anywhere_), Op::max, {.name = "gradients that are there"});
  if (missing_ == Missing::skip) return;
  std::vector<std::int32_t> lacking(had.size());
  for (std::size_t i = 0; i < had.size(); ++i)
    lacking[i] = had[i] == 0 ? communicator_.rank() : communicator_.size();
  communicator_.allreduce(std::span(lacking), Op::min, {.name = "gradients that are missing"});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < lacking.size(); ++i) {
    if (lacking[i] < communicator_.size())
      names.push_back(fmt::format("'{}' on rank {}", parameters_[i], lacking[i]));
  }
  if (names.empty()) return;
  complaint_ = fmt::format("no gradient for {}; call ready() for each in every step, or choose zero or skip",
                           fmt::join(names, ", "));
}

void Census::complain() {
  const std::string complaint = std::exchange(complaint_, {});
  base::require(complaint.empty(), "{}", complaint);
}

}  // namespace tutti::gradient
