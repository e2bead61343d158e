#include "model/optimizer.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::model;

TEST_CASE("SGD with momentum and weight decay, by hand") {
  const auto sgd = make_optimizer({.name = "sgd", .momentum = 0.5F, .weight_decay = 0.25F}, 1);
  std::vector<float> parameter{4};
  const std::vector<float> gradient{1};
  sgd->apply(parameter, gradient, 0.5F, 1);
  CHECK(parameter[0] == 3.0F);  // v = 1 + 0.25 * 4 = 2
  sgd->apply(parameter, gradient, 0.5F, 2);
  CHECK(parameter[0] == 3.0F - 0.5F * (1.0F + 1.0F + 0.75F));
  CHECK(sgd->state().size() == 1);
}

TEST_CASE("the first step of Adam is the rate, against the sign of the gradient") {
  const auto adam = make_optimizer({.name = "adam", .weight_decay = 0}, 2);
  std::vector<float> parameters{1, 1};
  const std::vector<float> gradient{1e-3F, -100};
  adam->apply(parameters, gradient, 0.01F, 1);
  CHECK(parameters[0] == Approx(0.99).epsilon(1e-4));
  CHECK(parameters[1] == Approx(1.01).epsilon(1e-4));
  CHECK(adam->state().size() == 2);
}

TEST_CASE("both find the minimum of a parabola") {
  for (const char* name : {"sgd", "adam"}) {
    const auto optimizer = make_optimizer({.name = name, .weight_decay = 0}, 1);
    std::vector<float> x{5};
    for (std::size_t step = 1; step <= 2000; ++step) {
      const std::vector<float> gradient{x[0] - 2};
      optimizer->apply(x, gradient, 0.05F, step);
    }
    CHECK(x[0] == Approx(2.0).margin(1e-2));
  }
}

TEST_CASE("learning rates: warm-up, constant, steps, cosine") {
  RateSchedule rate{.kind = RateKind::constant, .base = 1.0F, .warmup_steps = 4, .total_steps = 104};
  CHECK(rate.at(1) == 0.25F);
  CHECK(rate.at(4) == 1.0F);
  CHECK(rate.at(90) == 1.0F);
  rate.kind = RateKind::cosine;
  CHECK(rate.at(5) == 1.0F);
  CHECK(rate.at(55) == Approx(0.5));
  CHECK(rate.at(104) < 0.001F);
  rate.kind = RateKind::step;
  rate.every = 0.5;
  CHECK(rate.at(54) == Approx(1.0));
  CHECK(rate.at(55) == Approx(0.1));
  CHECK(rate.at(104) == Approx(0.1));
}

TEST_CASE("values out of range and unknown names are refused") {
  CHECK_THROWS_WITH(make_optimizer({.name = "lion"}, 1), ContainsSubstring("sgd, adam"));
  CHECK_THROWS_AS(make_optimizer({.momentum = 1}, 1), InvalidArgument);
  CHECK_THROWS_AS(make_optimizer({.weight_decay = -1}, 1), InvalidArgument);
  CHECK_THROWS_AS(rate_kind_from("exponential"), InvalidArgument);
}
