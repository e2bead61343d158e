#include "train/options.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::train;

TEST_CASE("every option that training depends on is described, by the flag that sets it") {
  TrainOptions options;
  const auto before = described(options);
  options.data.source = "x.csv";
  options.hidden = {3, 4};
  options.activation = model::Activation::tanh;
  options.loss = model::Loss::squared;
  options.optimizer.name = "adam";
  options.optimizer.momentum = 0.123F;
  options.rate_kind = model::RateKind::step;
  options.rate = 0.77F;
  options.batch = 7;
  options.epochs = 8;
  options.steps = 9;
  options.seed = 10;
  options.order = "any";
  options.resume = "file";
  const auto after = described(options);
  std::map<std::string, std::string> changed;
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i].first == after[i].first);
    if (before[i].second != after[i].second) changed[after[i].first] = after[i].second;
  }
  const std::map<std::string, std::string> expected{
      {"--data", "x.csv"},     {"--model", "3,4"},      {"--activation", "tanh"}, {"--loss", "squared"},
      {"--optimizer", "adam"}, {"--momentum", "0.123"}, {"--schedule", "step"},   {"--lr", "0.77"},
      {"--batch", "7"},        {"--epochs", "8"},       {"--steps", "9"},         {"--seed", "10"},
      {"--order", "any"},      {"--resume", "file"}};
  CHECK(changed == expected);
  options.lenet = true;
  const auto lenet = described(options);
  CHECK(std::ranges::count(lenet, std::pair<std::string, std::string>{"--model", "lenet"}) == 1);
}
