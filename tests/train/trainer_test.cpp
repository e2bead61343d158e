#include "train/trainer.hpp"

#include <cmath>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "data/file.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"
#include "train/checkpoint.hpp"

using namespace tutti;
using namespace tutti::train;

namespace {

TrainOptions short_run() {
  TrainOptions options;
  options.steps = 50;
  options.hidden = {32};
  options.rate = 0.05F;
  options.output = "";
  return options;
}

/// Trains on so many in-process ranks; the summary of rank 0.
Summary run(Rank ranks, const TrainOptions& options, std::uint64_t segment_bytes = 4 << 20,
            std::size_t stop_at = 0) {
  engine::LocalOptions local;
  local.core.segment_bytes = segment_bytes;
  local.core.timeout = Seconds(60);
  Summary result;
  engine::run_local(ranks, local, [&](Communicator& world) {
    const base::SteadyClock clock;
    Reporter silent;
    std::size_t asked = 0;
    // Only the last rank is told to stop.
    const auto stop = [&] { return stop_at > 0 && world.rank() == ranks - 1 && ++asked == stop_at; };
    const Summary summary = train::train(world, options, {clock, silent, stop});
    if (world.rank() == 0) result = summary;
  });
  return result;
}

std::vector<float> parameters_in(const std::string& path) {
  return decode(data::read_file(path), path).arrays[0].second;
}

/// The message with which training ends on every rank.
std::string failure(Rank ranks, const TrainOptions& options) {
  const auto errors = engine::run_local_catching(ranks, {}, [&](Communicator& world) {
    const base::SteadyClock clock;
    Reporter silent;
    train::train(world, options, {clock, silent, {}});
  });
  std::set<std::string> texts;
  for (const auto& error : errors) {
    try {
      if (!error) return "no error on some rank";
      std::rethrow_exception(error);
    } catch (const base::AgreedError& agreed_error) {
      texts.insert(agreed_error.what());
    } catch (const std::exception& other) {
      texts.insert(std::string("not agreed: ") + other.what());
    }
  }
  return texts.size() == 1 ? *texts.begin() : "different errors";
}

}  // namespace

TEST_CASE("the same global batch gives the same parameters at any rank count, to 1e-5 after 50 steps") {
  const Folder folder;
  std::vector<float> reference;
  for (const Rank ranks : {1, 2, 3, 4, 8}) {
    TrainOptions options = short_run();
    options.output = folder.path();
    run(ranks, options);
    const auto parameters = parameters_in(folder.path("checkpoint.tutti"));
    if (reference.empty()) reference = parameters;
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      difference += std::pow(static_cast<double>(parameters[i]) - static_cast<double>(reference[i]), 2);
      norm += std::pow(static_cast<double>(reference[i]), 2);
    }
    CHECK(std::sqrt(difference / norm) < 1e-5);
  }
}

TEST_CASE("at each rank count the bits are the same for every canonical algorithm and segment size") {
  for (const Rank ranks : {2, 3, 4, 8}) {
    std::set<std::uint64_t> hashes;
    for (const char* algorithm : {"", "recursive_doubling", "halving_doubling", "direct"}) {
      for (const std::uint64_t segment : {4U << 20U, 1000U}) {
        TrainOptions options = short_run();
        options.algorithm = algorithm;
        hashes.insert(run(ranks, options, segment).replica_hash);
      }
    }
    CHECK(hashes.size() == 1);
  }
}

TEST_CASE("buckets change when gradients travel, not the bits") {
  for (const Rank ranks : {1, 2, 3}) {
    std::set<std::uint64_t> hashes;
    for (const std::size_t bucket : {1UL, 1000UL, 4096UL, 1UL << 30U}) {
      TrainOptions options = short_run();
      options.hidden = {32, 16};
      options.bucket_bytes = bucket;
      options.first_bucket_bytes = bucket / 2;
      hashes.insert(run(ranks, options).replica_hash);
    }
    CHECK(hashes.size() == 1);
  }
}

TEST_CASE("a run that was interrupted and resumed ends with the bits of one that was not") {
  const Folder folder;
  for (const auto& [optimizer, codec] :
       std::vector<std::pair<std::string, std::string>>{{"sgd", ""},
                                                        {"adam", ""},
                                                        {"sgd", "int4:rounding=stochastic"},
                                                        {"sgd", "topk:density=0.05:reuse=3"}}) {
    INFO(optimizer << " " << codec);
    TrainOptions options = short_run();
    options.optimizer.name = optimizer;
    options.codec = codec;
    options.rate = 0.01F;
    const std::uint64_t whole = run(3, options).replica_hash;
    TrainOptions first = options;
    first.output = folder.path();
    const Summary stopped = run(3, first, 4 << 20, 21);
    CHECK(stopped.stopped);
    CHECK(stopped.steps == 21);
    TrainOptions second = first;
    second.resume = folder.path("checkpoint.tutti");
    CHECK(run(3, second).replica_hash == whole);
  }
}

TEST_CASE("digits are learned, and regression on a CSV file works") {
  TrainOptions options = short_run();
  options.hidden = {64};
  options.steps = 0;
  options.epochs = 20;
  options.rate = 0.2F;
  CHECK(run(2, options).last.test_accuracy > 0.95);
  options.loss = model::Loss::squared;
  options.rate = 0.05F;
  CHECK(run(2, options).last.test_accuracy > 0.93);

  const Folder folder;
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += fmt::format("{},{},{}\n", i % 17, i % 23, 3 * (i % 17) - (i % 23) + 5);
  TrainOptions regression = short_run();
  regression.data.source = folder.write("plane.csv", text);
  regression.data.regression = true;
  regression.loss = model::Loss::squared;
  regression.hidden = {};
  regression.steps = 400;
  regression.rate = 0.02F;
  const Summary summary = run(3, regression);
  CHECK_FALSE(summary.classification);
  CHECK(summary.last.test_loss < 0.01);
}

TEST_CASE("metrics and checkpoints are written, and replicas can be compared on the way") {
  const Folder folder;
  TrainOptions options = short_run();
  options.output = folder.path("new/folder");
  options.checkpoint_every = 10;
  options.verify_replicas = 7;
  const Summary summary = run(2, options);
  CHECK(summary.steps == 50);
  CHECK(decode(data::read_file(summary.checkpoint), "c").step == 50);
  CHECK_THAT(data::read_file(summary.metrics),
             ContainsSubstring(R"("event":"epoch")") && ContainsSubstring(R"("event":"summary")"));
}

TEST_CASE("replicas that differ are named") {
  const auto errors = engine::run_local_catching(4, {}, [](Communicator& world) {
    std::vector<float> parameters(100, 1.0F);
    verify_replicas(world, parameters);
    if (world.rank() == 2) parameters[50] = std::nextafter(1.0F, 2.0F);
    verify_replicas(world, parameters);
  });
  for (const auto& error : errors)
    CHECK_THROWS_WITH(std::rethrow_exception(error),
                      ContainsSubstring("parameters of rank 2 are not those of rank 0"));
}

TEST_CASE("whatever is wrong is the same clear error on every rank") {
  const Folder folder;
  const auto expect = [](Rank ranks, const TrainOptions& options, const std::string& text) {
    CHECK_THAT(failure(ranks, options), ContainsSubstring(text));
  };
  TrainOptions options = short_run();
  options.rate = 1e30F;
  expect(3, options, "the loss is nan");
  options = short_run();
  options.batch = 0;
  expect(2, options, "global batch is 0");
  options = short_run();
  options.epochs = options.steps = 0;
  expect(2, options, "0 steps");
  options = short_run();
  options.rate = 0;
  expect(2, options, "learning rate 0");
  options = short_run();
  options.data.source = folder.path("missing");
  expect(3, options, "no such file");
  options = short_run();
  options.data.source = folder.write("few.csv", "1,0\n2,1\n3,0\n");
  expect(4, options, "4 ranks for 2 training samples");
  options = short_run();
  options.output = folder.write("file", "");
  expect(2, options, "cannot make the output folder");
  options = short_run();
  options.algorithm = "fancy";
  expect(2, options, "no allreduce algorithm 'fancy'");
}

TEST_CASE("checkpoints that do not fit are refused on every rank") {
  const Folder folder;
  TrainOptions options = short_run();
  options.output = folder.path();
  run(2, options);
  const auto refused = [&](const TrainOptions& changed, const std::string& text) {
    CHECK_THAT(failure(2, changed), ContainsSubstring(text));
  };
  TrainOptions resumed = short_run();
  resumed.resume = folder.path("checkpoint.tutti");
  refused(resumed, "nothing is left to train");
  resumed.steps = 60;
  resumed.hidden = {16};
  refused(resumed, "its model is 64-32-10 relu, this run's is 64-16-10 relu");
  resumed.hidden = {32};
  resumed.seed = 2;
  refused(resumed, "its seed is 1, this run's is 2");
  resumed.seed = 1;
  resumed.optimizer.name = "adam";
  refused(resumed, "its optimizer is sgd, this run's is adam");
  const std::string bytes = data::read_file(folder.path("checkpoint.tutti"));
  resumed = short_run();
  resumed.steps = 60;
  resumed.resume = folder.write("short.tutti", bytes.substr(0, bytes.size() / 2));
  refused(resumed, "cut short");
  resumed.resume = folder.path("none.tutti");
  refused(resumed, "cannot open");
}
