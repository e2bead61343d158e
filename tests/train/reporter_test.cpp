#include "train/reporter.hpp"

#include "support/catch.hpp"

using namespace tutti::train;

TEST_CASE("the summary table says what a reader looks for") {
  Summary summary{.steps = 10, .ranks = 4, .parameters = 9610, .seconds = 1.5, .replica_hash = 0xabc};
  summary.last.test_accuracy = 0.975;
  summary.last.communication = 0.5;
  summary.checkpoint = "run/checkpoint.tutti";
  const std::string table = table_of(summary);
  CHECK_THAT(table, ContainsSubstring("97.50 %") &&
                        ContainsSubstring("bit-identical on 4 ranks, hash 0000000000000abc") &&
                        ContainsSubstring("run/checkpoint.tutti") && ContainsSubstring("not written"));
  summary.classification = false;
  CHECK_THAT(table_of(summary), ContainsSubstring("test loss"));
}

TEST_CASE("metrics are one JSON object a line") {
  EpochMetrics metrics{.epoch = 3, .step = 69, .train_loss = 0.5, .test_accuracy = 0.9};
  const std::string line = json_of(metrics, true);
  CHECK(line.find('\n') == std::string::npos);
  CHECK_THAT(line, ContainsSubstring(R"("epoch":3)") && ContainsSubstring(R"("test_accuracy":0.9)"));
  CHECK(json_of(metrics, false).find("accuracy") == std::string::npos);
  CHECK_THAT(json_of(Summary{.replica_hash = 1}), ContainsSubstring(R"("replica_hash":"0000000000000001")"));
}
