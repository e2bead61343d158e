#include "tutti/communicator.hpp"

#include <array>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"

using namespace tutti;
using engine::LocalOptions;
using engine::run_local;

namespace {

/// What the ranks found wrong, as one text; empty if nothing. Catch's macros are for the main thread only.
class Findings {
 public:
  void expect(bool ok, const std::string& what) {
    if (ok) return;
    const std::scoped_lock lock(mutex_);
    text_ += what + "; ";
  }

  std::string text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

LocalOptions with_timeout() {
  LocalOptions options;
  options.core.timeout = Seconds(30);
  return options;
}

}  // namespace

TEST_CASE("typed calls do what their comments say") {
  for (const Rank ranks : {1, 2, 3, 5, 8}) {
    Findings findings;
    run_local(ranks, with_timeout(), [&](Communicator& world) {
      const auto p = static_cast<float>(ranks);
      const auto me = static_cast<float>(world.rank());
      const auto r = static_cast<std::size_t>(world.rank());
      std::vector<float> data{me, 2 * me};
      world.allreduce(std::span(data), Op::sum);
      findings.expect(data[0] == p * (p - 1) / 2 && data[1] == p * (p - 1), "allreduce in place");
      const std::vector<double> in{1.0 + me};
      std::vector<double> out(1);
      world.allreduce(std::span<const double>(in), std::span(out), Op::max);
      findings.expect(out[0] == p && in[0] == 1.0 + me, "allreduce out of place");
      std::vector<std::int32_t> all(static_cast<std::size_t>(ranks), world.rank());
      std::vector<std::int32_t> block(1);
      world.reduce_scatter(std::span<const std::int32_t>(all), std::span(block), Op::sum);
      findings.expect(block[0] == ranks * (ranks - 1) / 2, "reduce_scatter");
      block[0] = world.rank();
      std::vector<std::int32_t> gathered(all.size());
      world.allgather(std::span<const std::int32_t>(block), std::span(gathered));
      findings.expect(gathered[r] == world.rank() && gathered.back() == ranks - 1, "allgather");
      std::vector<std::uint8_t> text(3, static_cast<std::uint8_t>(world.rank()));
      world.broadcast(std::span(text), ranks - 1);
      findings.expect(text[2] == ranks - 1, "broadcast");
      std::vector<std::int64_t> total{world.rank()};
      world.reduce(std::span(total), Op::sum, ranks / 2);
      findings.expect(total[0] == (world.rank() == ranks / 2 ? ranks * (ranks - 1) / 2 : world.rank()),
                      "reduce");
      world.barrier();
    });
    CHECK(findings.text().empty());
    INFO(findings.text());
  }
}

TEST_CASE("many asynchronous operations may be in flight and be waited for in any order") {
  for (const bool thread : {false, true}) {
    auto options = with_timeout();
    options.background_thread = thread;
    options.core.segment_bytes = 128;
    Findings findings;
    run_local(4, options, [&](Communicator& world) {
      constexpr int operations = 200;  // more than the window of tags
      std::vector<std::vector<float>> buffers;
      std::vector<Work> works;
      for (int i = 0; i < operations; ++i)
        buffers.emplace_back(static_cast<std::size_t>(i) + 1, static_cast<float>(world.rank() + i));
      for (auto& buffer : buffers) works.push_back(world.allreduce_async(std::span(buffer), Op::sum));
      float one = 1;
      world.allreduce(std::span(&one, 1), Op::sum);  // a blocking one between
      findings.expect(one == 4, "blocking between asynchronous");
      for (std::size_t i = operations; i-- > 0;) {
        works[i].wait();
        works[i].wait();  // a second time does nothing
        findings.expect(buffers[i].back() == 6.0F + 4.0F * static_cast<float>(i),
                        "asynchronous " + std::to_string(i));
      }
    });
    INFO(findings.text());
    CHECK(findings.text().empty());
  }
}

TEST_CASE("done() makes progress where no thread does, and work that is dropped still completes") {
  Findings findings;
  run_local(3, with_timeout(), [&](Communicator& world) {
    std::vector<float> data(1000, 1.0F);
    Work work = world.allreduce_async(std::span(data), Op::sum);
    while (!work.done()) {
    }
    findings.expect(data[999] == 3, "polled");
    { const Work dropped = world.allreduce_async(std::span(data), Op::sum); }
    findings.expect(data[0] == 9, "dropped");
    Work replaced = world.allreduce_async(std::span(data), Op::sum);
    replaced = Work();
    findings.expect(data[0] == 27, "replaced");
  });
  CHECK(findings.text().empty());
}

TEST_CASE("split communicators work side by side and can be split again") {
  Findings findings;
  run_local(8, with_timeout(), [&](Communicator& world) {
    Communicator half = world.split(world.rank() % 2, -world.rank());
    Communicator pair = half.split(half.rank() / 2);
    std::vector<std::int32_t> value{world.rank()};
    half.allreduce(std::span(value), Op::sum);
    findings.expect(value[0] == (world.rank() % 2 == 0 ? 12 : 16), "sum in half");
    findings.expect(half.size() == 4 && half.rank() == 3 - world.rank() / 2, "numbers in half");
    std::vector<std::int32_t> one{1};
    pair.allreduce(std::span(one), Op::sum);
    world.allreduce(std::span(one), Op::sum);
    findings.expect(one[0] == 16, "pairs, then world");
  });
  CHECK(findings.text().empty());
}

TEST_CASE("zero elements take their place in the order and touch nothing") {
  run_local(3, with_timeout(), [&](Communicator& world) {
    float one = 1;
    world.allreduce(nullptr, nullptr, 0, DType::f32, Op::sum);
    world.allreduce(std::span(&one, 1), Op::sum);
    world.allgather(nullptr, nullptr, 0, DType::f32);
    const std::vector<std::size_t> none(3, 0);
    world.allgatherv(nullptr, 0, nullptr, 0, none, DType::i8);
    world.allreduce_async(nullptr, nullptr, 0, DType::f64, Op::max).wait();
    world.broadcast(nullptr, 0, DType::u8, 2);
    world.allreduce(std::span(&one, 1), Op::sum);
    base::require(one == 9, "{} is not 9", one);
  });
}

TEST_CASE("wrong arguments are errors that say what is right, before anything is sent") {
  Findings findings;
  run_local(2, with_timeout(), [&](Communicator& world) {
    std::vector<float> data(10, 1.0F);
    const auto rejects = [&](const std::string& expected, const auto& call) {
      try {
        call();
        findings.expect(false, "accepted: " + expected);
      } catch (const InvalidArgument& error) {
        findings.expect(std::string(error.what()).find(expected) != std::string::npos, error.what());
      }
    };
    rejects("no allreduce algorithm 'fancy'; known are recursive_doubling, halving_doubling",
            [&] { world.allreduce(std::span(data), Op::sum, {.algorithm = "fancy"}); });
    rejects("overlap in part", [&] { world.allreduce(&data[0], &data[1], 5, DType::f32, Op::sum); });
    rejects("root 2 is not a rank", [&] { world.broadcast(std::span(data), 2); });
    rejects("root -1 is not a rank", [&] { world.reduce(std::span(data), Op::sum, -1); });
    rejects("null pointer", [&] { world.allreduce(nullptr, nullptr, 3, DType::f32, Op::sum); });
    rejects("prescale 2 needs a floating element type, not i32", [&] {
      std::vector<std::int32_t> ints(3);
      world.allreduce(std::span(ints), Op::sum, {.name = "t", .prescale = 2});
    });
    rejects("finite", [&] { world.allreduce(std::span(data), Op::sum, {.prescale = 1.0 / 0.0}); });
    rejects("3 counts for 2 ranks", [&] {
      const std::array<std::size_t, 3> counts{1, 1, 1};
      world.allgatherv(std::span<const float>(data).first(1), std::span(data).subspan(4, 3), counts);
    });
    rejects("buffers hold 10 and 5", [&] {
      std::vector<float> out(5);
      world.allreduce(std::span<const float>(data), std::span(out), Op::sum);
    });
    rejects("split: color -1 of rank 0", [&] { world.split(-1); });
    rejects("do not fit in memory",
            [&] { world.allreduce(data.data(), data.data(), ~std::size_t{0} / 2, DType::f32, Op::sum); });
    world.allreduce(std::span(data), Op::sum);  // all of this has cost the communicator nothing
    findings.expect(data[9] == 2, "after the errors");
  });
  INFO(findings.text());
  CHECK(findings.text().empty());
}
