#include "model/loss.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti::model;

TEST_CASE("cross-entropy of even logits is log of the classes, and large logits do not overflow") {
  const std::vector<float> even(4, 0.0F);
  const std::vector<std::uint32_t> label{2};
  std::vector<float> gradient(4);
  const auto result = cross_entropy<float>(even, label, 4, 0.5F, gradient);
  CHECK(result.loss == Approx(std::log(4.0)));
  CHECK(gradient[0] == Approx(0.125));
  CHECK(gradient[2] == Approx(-0.375));
  const std::vector<float> large{1000, -1000};
  CHECK(cross_entropy<float>(large, std::vector<std::uint32_t>{0}, 2, 1.0F, {}).loss ==
        Approx(0.0).margin(1e-6));
  CHECK(cross_entropy<float>(large, std::vector<std::uint32_t>{1}, 2, 1.0F, {}).loss == Approx(2000.0));
}

TEST_CASE("losses are sums over samples, and correct ones are counted") {
  const std::vector<float> logits{3, 1, 0, 5, 2, 2};
  const auto result = cross_entropy<float>(logits, std::vector<std::uint32_t>{0, 1, 1}, 2, 1.0F, {});
  CHECK(result.correct == 2);
  const std::vector<float> targets{2, 1, 0, 5, 2, 4};
  CHECK(squared<float>(logits, targets, 1.0F, {}) == Approx(2.5));
}

TEST_CASE("unknown losses are refused with the known ones") {
  CHECK_THROWS_WITH(loss_from("hinge"), ContainsSubstring("cross_entropy, squared"));
}
