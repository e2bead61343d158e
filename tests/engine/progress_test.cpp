#include "engine/progress.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::engine;

namespace {

/// Done after so many turns, or throws then.
class Countdown final : public Operation {
 public:
  explicit Countdown(int turns, bool fails = false) : turns_(turns), fails_(fails) {}

  Turn advance() override {
    if (--turns_ > 0) return Turn::moved;
    if (fails_) throw std::runtime_error("counted down");
    return Turn::done;
  }

  std::string describe() const override { return "countdown"; }

 private:
  int turns_;
  bool fails_;
};

class Stuck final : public Operation {
 public:
  Turn advance() override { return Turn::idle; }

  std::string describe() const override { return "waits for a rank that never comes"; }
};

std::shared_ptr<Progress> make_progress(Unattended unattended) {
  return std::make_shared<Progress>(std::make_shared<base::SteadyClock>(), base::WaitLimits::for_load(4, 1),
                                    unattended);
}

}  // namespace

TEST_CASE("a blocking operation advances the pending ones too") {
  const auto progress = make_progress(Unattended::calls_only);
  const auto pending = progress->add(std::make_unique<Countdown>(50), Seconds(0));
  CHECK_FALSE(pending->finished());
  progress->run(std::make_unique<Countdown>(100), Seconds(0));
  CHECK(pending->finished());
}

TEST_CASE("the thread finishes work that nobody waits for") {
  const auto progress = make_progress(Unattended::thread);
  const auto pending = progress->add(std::make_unique<Countdown>(1000), Seconds(0));
  while (!pending->finished()) std::this_thread::yield();
  CHECK_NOTHROW(Progress::wait(*pending));
}

TEST_CASE("errors reach whoever waits, once") {
  for (const auto unattended : {Unattended::calls_only, Unattended::thread}) {
    const auto progress = make_progress(unattended);
    const auto pending = progress->add(std::make_unique<Countdown>(5, true), Seconds(0));
    CHECK_THROWS_WITH(Progress::wait(*pending), "counted down");
    CHECK(pending->failed());
    CHECK_THROWS_WITH(progress->run(std::make_unique<Countdown>(5, true), Seconds(0)), "counted down");
  }
}

TEST_CASE("a deadline says what was waited for") {
  const auto progress = make_progress(Unattended::calls_only);
  CHECK_THROWS_WITH(progress->run(std::make_unique<Stuck>(), Seconds(0.01)),
                    ContainsSubstring("waits for a rank that never comes"));
  const auto pending = progress->add(std::make_unique<Stuck>(), Seconds(0.01));
  CHECK_THROWS_WITH(Progress::wait(*pending), ContainsSubstring("waits for a rank that never comes"));
}
