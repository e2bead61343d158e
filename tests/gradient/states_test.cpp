#include "gradient/states.hpp"

#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "compress/codec.hpp"
#include "engine/local.hpp"
#include "support/catch.hpp"
#include "tutti/reducer.hpp"

using namespace tutti;

namespace {

const std::vector<Reducer::Parameter> parameters{{.name = "matrix", .count = 1200, .rows = 30},
                                                 {.name = "bias", .count = 37},
                                                 {.name = "tail|x", .count = 301}};

float value(std::size_t parameter, std::size_t element, Rank rank, std::uint64_t step) {
  const std::uint64_t bits =
      base::mix(base::mix(step * 64 + static_cast<std::uint64_t>(rank)) + parameter * 5000 + element);
  return static_cast<float>(static_cast<std::int64_t>(bits) >> 40) * 0x1p-23F;
}

/// Takes one step; `each` sees parameter, element and result.
template <class Each>
void take_step(Reducer& reducer, Rank rank, std::uint64_t step, const Each& each) {
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto view = reducer.gradient(i);
    for (std::size_t k = 0; k < view.size(); ++k) view[k] = value(i, k, rank, step);
    reducer.ready(i);
  }
  reducer.finish();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto view = reducer.gradient(i);
    for (std::size_t k = 0; k < view.size(); ++k) each(i, k, view[k]);
  }
}

using Table = std::vector<std::vector<double>>;

Table zeros() {
  Table table;
  for (const auto& parameter : parameters) table.emplace_back(parameter.count);
  return table;
}

/// What is still to come, in units of the result.
Table unsent(const ReducerState& state, Op op) {
  Table table = zeros();
  for (const auto& array : state.arrays) {
    if (array.name.find("|residual|") == std::string::npos) continue;
    const bool owner = array.name.find("|owner|") != std::string::npos;
    const double factor = op == Op::average && !owner ? 1.0 / state.ranks : 1.0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!array.name.ends_with("|" + parameters[i].name)) continue;
      for (std::size_t k = 0; k < parameters[i].count; ++k)
        table[i][k] += factor * static_cast<double>(array.values[k]);
    }
  }
  return table;
}

struct Phase {
  Rank ranks = 0;
  std::uint64_t steps = 0;
  std::size_t bucket_bytes = 0;
};

/// Every phase goes on from where the one before was saved. Returns the largest difference between what
/// was put in and what came out or is kept, in parts of what was put in.
double lost(const std::string& codec, Op op, const std::vector<Phase>& phases) {
  Table put_in = zeros();
  Table came_out = zeros();
  ReducerState state;
  std::uint64_t first = 0;
  for (const Phase& phase : phases) {
    ReducerState next;
    engine::run_local(phase.ranks, {}, [&](Communicator& world) {
      Reducer reducer(
          world, parameters,
          {.bucket_bytes = phase.bucket_bytes, .first_bucket_bytes = 100, .op = op, .codec = codec});
      if (state.ranks > 0) reducer.restore(state);
      for (std::uint64_t step = first; step < first + phase.steps; ++step) {
        take_step(reducer, world.rank(), step, [&](std::size_t i, std::size_t k, float result) {
          if (world.rank() != 0) return;
          came_out[i][k] += static_cast<double>(result);
          double sum = 0;
          for (Rank r = 0; r < phase.ranks; ++r) sum += static_cast<double>(value(i, k, r, step));
          put_in[i][k] += op == Op::average ? sum / phase.ranks : sum;
        });
      }
      ReducerState saved = reducer.save();
      if (world.rank() == 0) next = std::move(saved);
    });
    state = std::move(next);
    first += phase.steps;
  }
  CHECK(state.step == first);
  const Table kept = unsent(state, op);
  double worst = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t k = 0; k < kept[i].size(); ++k)
      worst = std::max(worst, std::abs(put_in[i][k] - came_out[i][k] - kept[i][k]));
  }
  return worst;
}

/// Results of some steps, after `before` of them interrupted by a restart.
std::vector<float> results(const std::string& codec, Rank ranks, std::uint64_t before) {
  std::vector<float> values;
  ReducerState state;
  const auto run = [&](std::uint64_t first, std::uint64_t last, std::size_t bucket_bytes) {
    ReducerState next;
    engine::run_local(ranks, {}, [&](Communicator& world) {
      Reducer reducer(world, parameters, {.bucket_bytes = bucket_bytes, .codec = codec, .seed = 5});
      if (state.ranks > 0) reducer.restore(state);
      for (std::uint64_t step = first; step < last; ++step)
        take_step(reducer, world.rank(), step, [&](std::size_t, std::size_t, float result) {
          if (world.rank() == ranks - 1) values.push_back(result);
        });
      ReducerState saved = reducer.save();
      if (world.rank() == 0) next = std::move(saved);
    });
    state = std::move(next);
  };
  if (before > 0) run(0, before, 1 << 20);
  run(before, 9, 2000);
  return values;
}

}  // namespace

TEST_CASE("1000 steps lose nothing, whatever buckets, restarts and changes of the rank count") {
  for (const std::string codec :
       {"int4", "int8:feedback=on", "blocktopk:density=0.02:block=64", "topk:density=0.02",
        "topk:density=0.02:reuse=4", "dgc:density=0.02:momentum=0", "randomk:density=0.1",
        "redsync:density=0.02:small=0:large=0", "powersgd", "ternary", "onebit:warmup=300",
        "natural:feedback=on"}) {
    for (const Op op : {Op::sum, Op::average}) {
      INFO(codec << " " << name_of(op));
      CHECK(lost(codec, op, {{3, 250, 1 << 20}, {3, 150, 0}, {4, 250, 2500}, {1, 50, 2500}, {2, 300, 4000}}) <
            2e-3);
    }
  }
}

TEST_CASE("a restart leaves the bits as they are, with every codec") {
  std::vector<std::string> texts{"int8:rounding=stochastic:feedback=on", "topk:density=0.03:reuse=3",
                                 "dgc:density=0.03:warmup=6", "onebit:warmup=6", "powersgd:warmup=3"};
  for (const auto& entry : compress::codecs()) texts.emplace_back(entry.name);
  for (const std::string& codec : texts) {
    for (const Rank ranks : {1, 3}) {
      INFO(codec << " on " << ranks << " ranks");
      CHECK(results(codec, ranks, 4) == results(codec, ranks, 0));
    }
  }
}

TEST_CASE("until its warm-up ends, a codec leaves gradients as they are") {
  const auto exact = results("", 3, 0);
  CHECK(results("onebit:warmup=1000", 3, 0) == exact);
  CHECK(results("onebit:warmup=1000", 3, 4) == exact);
  for (const std::uint64_t restart : {0U, 2U, 5U, 8U}) {
    const auto warmed = results("onebit:warmup=5", 3, restart);
    const auto steps = static_cast<std::ptrdiff_t>(exact.size() / 9);
    CHECK(std::equal(exact.begin(), exact.begin() + 5 * steps, warmed.begin()));
    CHECK(!std::equal(exact.begin() + 5 * steps, exact.begin() + 6 * steps, warmed.begin() + 5 * steps));
    // It begins with nothing kept, as a first step does; only step numbers differ, and it draws nothing.
    CHECK(warmed == results("onebit:warmup=5", 3, 0));
  }
}

TEST_CASE("what one codec has not sent goes with the first gradients of the next") {
  for (const std::string next : {"", "bf16", "int4", "topk:density=0.5"}) {
    ReducerState saved;
    Table expected = zeros();
    engine::run_local(2, {}, [&](Communicator& world) {
      Reducer reducer(world, parameters, {.op = Op::sum, .codec = "int4:block=64"});
      for (std::uint64_t step = 0; step < 3; ++step)
        take_step(reducer, world.rank(), step, [](std::size_t, std::size_t, float) {});
      ReducerState state = reducer.save();
      if (world.rank() == 0) saved = std::move(state);
    });
    expected = unsent(saved, Op::sum);
    ReducerState half_way;
    engine::run_local(2, {}, [&](Communicator& world) {
      Reducer reducer(world, parameters, {.op = Op::sum, .codec = next});
      reducer.restore(saved);
      Table result = zeros();
      Table put_in = zeros();
      constexpr std::uint64_t last = 3 + gradient::CodecStates::settling_steps;
      for (std::uint64_t step = 3; step < last; ++step) {
        take_step(reducer, world.rank(), step, [&](std::size_t i, std::size_t k, float x) {
          result[i][k] += static_cast<double>(x);
          const double sum =
              static_cast<double>(value(i, k, 0, step)) + static_cast<double>(value(i, k, 1, step));
          put_in[i][k] += sum;
          // Only a part of it in one step.
          const double burst = std::abs(static_cast<double>(x) - sum);
          base::require(!next.empty() || burst < std::abs(expected[i][k]) / 30 + 1e-5, "step {}: {} more",
                        step, burst);
        });
        if (step + 1 < last && next.empty()) {
          ReducerState state = reducer.save();
          if (world.rank() == 0) half_way = std::move(state);
          world.barrier();
          reducer.restore(half_way);
          world.barrier();
        }
      }
      const ReducerState state = reducer.save();
      if (world.rank() != 0) return;
      const Table kept = unsent(state, Op::sum);
      const bool rounds = next == "bf16";
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        for (std::size_t k = 0; k < parameters[i].count; ++k) {
          const double wanted = expected[i][k] + put_in[i][k];
          base::require(std::abs(result[i][k] + kept[i][k] - wanted) < (rounds ? 0.5 : 1e-3),
                        "'{}', element {} of {}: {} and {} kept, expected {}", next, k, i, result[i][k],
                        kept[i][k], wanted);
        }
      }
    });
  }
}

TEST_CASE("a parameter that gets no gradient is reduced nevertheless while something is owed to it") {
  engine::run_local(2, {}, [](Communicator& world) {
    Reducer reducer(world, {{"a", 1000}},
                    {.op = Op::sum, .missing = Missing::skip, .codec = "topk:density=0.1"});
    double sum = 0;
    for (int step = 0; step < 12; ++step) {
      if (step == 0) {
        std::ranges::fill(reducer.gradient(0), 1.0F);
        reducer.ready(0);
      }
      reducer.finish();
      base::require(reducer.got_gradient(0), "step {}: left out", step);
      for (const float x : reducer.gradient(0)) sum += static_cast<double>(x);
    }
    base::require(sum == 2000, "{} of 2000 arrived", sum);
  });
}

TEST_CASE("states that are not of this Reducer are refused, and nothing has changed") {
  engine::run_local(2, {}, [](Communicator& world) {
    Reducer reducer(world, parameters, {.codec = "int4"});
    take_step(reducer, world.rank(), 0, [](std::size_t, std::size_t, float) {});
    const ReducerState before = reducer.save();
    const auto refused = [&](std::string name, std::size_t count, Rank ranks, std::string_view why) {
      ReducerState state = before;
      state.ranks = ranks;
      if (world.rank() != 0) state.arrays.clear();
      state.arrays.push_back({std::move(name), std::vector<float>(count)});
      std::string said;
      try {
        reducer.restore(state);
      } catch (const InvalidArgument& error) {
        said = error.what();
      }
      base::require(said.find(why) != std::string::npos, "said '{}', not '{}'", said, why);
    };
    refused("int4|local|0|residual|other", 37, 2, "a parameter 'other'");
    refused("int4|local|0|residual|bias", 36, 2, "36 elements of parameter 'bias', this Reducer 37");
    refused("int4|local|0|residual|bias", 37, 0, "0 ranks");
    refused("int4|elsewhere|0|residual|bias", 37, 2, "no array of a Reducer's state");
    refused("int4|local|x|residual|bias", 37, 2, "no array of a Reducer's state");
    refused("bias", 37, 2, "no array of a Reducer's state");
    refused("int4|local|0|#threshold|bias", 1, 2, "the 2 halves of a number");
    const ReducerState after = reducer.save();
    for (std::size_t i = 0; i < after.arrays.size(); ++i)
      base::require(
          after.arrays[i].name == before.arrays[i].name && after.arrays[i].values == before.arrays[i].values,
          "{} changed", after.arrays[i].name);
    reducer.ready(0);
    std::string said;
    try {
      static_cast<void>(reducer.save());
    } catch (const InvalidArgument& error) {
      said = error.what();
    }
    base::require(said.find("in the middle of a step") != std::string::npos, "said '{}'", said);
    reducer.finish();
  });
}
