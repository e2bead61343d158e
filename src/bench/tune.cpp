#include "bench/tune.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "bench/links.hpp"
#include "bench/statistics.hpp"
#include "engine/communicator_state.hpp"

namespace tutti::bench {

using engine::Choice;
using engine::Path;
using schedule::Collective;

namespace {

/// Another way must be faster by this to be taken: machines are noisy.
constexpr double worthwhile = 0.97;

/// A heat: samples of each contender, and how much slower than the best one may be to stay.
struct Heat {
  std::size_t samples;
  double limit;
  std::size_t stay;  ///< at most so many for each order
};

constexpr Heat heats[] = {{3, 2.0, 8}, {9, 1.25, 4}, {41, 1.0, 1}};

class Racer {
 public:
  Racer(Communicator& world, const base::Clock& clock, const TuneOptions& options)
      : world_(world), clock_(clock), options_(options), in_(most_bytes()), out_(most_bytes()) {}

  Race run(Collective collective, std::uint64_t bytes) {
    Race race{.collective = collective, .bytes = bytes, .contenders = {}};
    request_ = {.collective = collective, .input = in_.data(), .output = out_.data(), .type = DType::f32};
    request_.count = bytes / sizeof(float);
    if (collective == Collective::reduce_scatter || collective == Collective::allgather)
      request_.count = std::max<std::size_t>(1, request_.count / static_cast<std::size_t>(world_.size()));
    if (collective == Collective::broadcast) request_.input = out_.data();
    enter_contenders(race);
    for (const Heat& heat : heats) run_heat(race, heat);
    for (const std::size_t any : {0U, 1U}) race.winner[any] = best(race, any != 0, race.untuned[any]);
    return race;
  }

 private:
  /// Blocks are of at least one element.
  std::size_t most_bytes() const {
    return std::max<std::size_t>(options_.end, sizeof(float) * static_cast<std::size_t>(world_.size()));
  }

  engine::CommunicatorState& state() { return world_.state(); }

  engine::Request in_order(bool any) const {
    engine::Request request = request_;
    request.any_order = any;
    return request;
  }

  void enter_contenders(Race& race) {
    std::vector<Choice> choices{{.path = Path::node}, {.path = Path::hierarchy}, {.path = Path::library}};
    for (const auto& priced : state().engine().candidates(in_order(true))) choices.push_back(priced.choice);
    for (const Choice& choice : choices) {
      if (!state().refusal(in_order(true), choice).empty()) continue;
      Contender contender{.choice = choice};
      contender.canonical =
          state().refusal(in_order(false), choice).empty() && state().keeps_order(in_order(false), choice);
      race.contenders.push_back(std::move(contender));
    }
    for (const std::size_t any : {0U, 1U}) {
      Choice choice = state().untuned(in_order(any != 0));
      if (choice.path == Path::schedule) choice = state().engine().choose(in_order(any != 0)).choice;
      const auto at = std::ranges::find(race.contenders, choice, &Contender::choice);
      race.untuned[any] = static_cast<std::size_t>(at - race.contenders.begin());
    }
  }

  void run_heat(Race& race, const Heat& heat) {
    std::vector<Contender*> racing;
    double slowest = 0;
    for (Contender& contender : race.contenders) {
      if (!contender.in_race) continue;
      racing.push_back(&contender);
      slowest = std::max(slowest, contender.median);
    }
    std::size_t samples = heat.samples;
    if (slowest > 0)
      samples = std::clamp<std::size_t>(static_cast<std::size_t>(options_.seconds / slowest), 3, samples);
    for (Contender* contender : racing) {
      contender->samples.clear();
      sample(*contender);  // what it needs is set up, and the caches are warm
    }
    for (std::size_t i = 0; i < samples; ++i) {
      for (std::size_t c = 0; c < racing.size(); ++c) {
        Contender& contender = *racing[(c + i) % racing.size()];
        contender.samples.push_back(sample(contender));
      }
    }
    for (Contender* contender : racing) {
      world_.allreduce(std::span(contender->samples), Op::max);
      contender->median = spread_of(contender->samples).median;
    }
    if (heat.stay > 1) drop_out(race, heat);
  }

  static void drop_out(Race& race, const Heat& heat) {
    std::vector<bool> stays(race.contenders.size(), false);
    for (const std::size_t any : {0U, 1U}) {
      stays[race.untuned[any]] = true;
      std::vector<std::size_t> order;
      for (std::size_t c = 0; c < race.contenders.size(); ++c) {
        if (race.contenders[c].in_race && (any != 0 || race.contenders[c].canonical)) order.push_back(c);
      }
      std::ranges::stable_sort(order, {}, [&](std::size_t c) { return race.contenders[c].median; });
      for (std::size_t i = 0; i < std::min(heat.stay, order.size()); ++i)
        stays[order[i]] = stays[order[i]] ||
                          race.contenders[order[i]].median <= heat.limit * race.contenders[order[0]].median;
    }
    for (std::size_t c = 0; c < stays.size(); ++c) race.contenders[c].in_race = stays[c];
  }

  static std::size_t best(const Race& race, bool any, std::size_t untuned) {
    std::size_t best = untuned;
    for (std::size_t c = 0; c < race.contenders.size(); ++c) {
      const Contender& contender = race.contenders[c];
      if (!contender.in_race || (!any && !contender.canonical)) continue;
      if (!clearly_faster(contender, race.contenders[untuned])) continue;
      if (best == untuned || contender.median < race.contenders[best].median) best = c;
    }
    return best;
  }

  /// In the first half of the last heat as well as in the second: what disturbs a machine comes and goes.
  static bool clearly_faster(const Contender& contender, const Contender& untuned) {
    const auto half = [](const Contender& of, bool second) {
      const auto middle = of.samples.begin() + static_cast<std::ptrdiff_t>(of.samples.size() / 2);
      return spread_of(second ? std::vector(middle, of.samples.end())
                              : std::vector(of.samples.begin(), middle))
          .median;
    };
    return half(contender, false) < worthwhile * half(untuned, false) &&
           half(contender, true) < worthwhile * half(untuned, true);
  }

  /// Seconds of one call on this rank, its input fresh from this rank's own writing.
  double sample(const Contender& contender) {
    const std::string text = text_of(contender.choice);
    const CallOptions options{.order = Order::any, .algorithm = text};
    engine::Request request = state().prepare(request_, options);
    const std::uint64_t bytes = engine::message_bytes(request_, world_.size());
    std::memset(request_.collective == Collective::broadcast ? out_.data() : in_.data(), 1, bytes);
    // Twice: whoever slept in the first one is awake in the second.
    world_.barrier();
    world_.barrier();
    const Seconds begin = clock_.now();
    state().run(request);
    return (clock_.now() - begin).count();
  }

  Communicator& world_;
  const base::Clock& clock_;
  const TuneOptions& options_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  engine::Request request_;
};

std::uint64_t between(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
}

}  // namespace

std::vector<std::uint64_t> borders_of(const std::vector<Race>& races) {
  std::vector<std::uint64_t> middles;
  const auto winner = [](const Race& race, std::size_t any) -> const Choice& {
    return race.contenders[race.winner[any]].choice;
  };
  for (std::size_t i = 1; i < races.size(); ++i) {
    const Race& before = races[i - 1];
    const Race& after = races[i];
    if (winner(before, 0) == winner(after, 0) && winner(before, 1) == winner(after, 1)) continue;
    const std::uint64_t middle = between(before.bytes, after.bytes) / sizeof(float) * sizeof(float);
    if (middle > before.bytes && after.bytes >= 2 * before.bytes + sizeof(float)) middles.push_back(middle);
  }
  return middles;
}

std::vector<engine::Rule> rules_of(const std::vector<Race>& races, Rank ranks, Rank nodes) {
  std::vector<engine::Rule> rules;
  for (const bool any : {false, true}) {
    for (std::size_t i = 0; i < races.size(); ++i) {
      const Race& race = races[i];
      const Contender& winner = race.contenders[race.winner[any ? 1 : 0]];
      const bool follows = i > 0 && races[i - 1].collective == race.collective;
      if (follows) rules.back().to = between(races[i - 1].bytes, race.bytes);
      if (follows && rules.back().use == winner.choice) {
        rules.back().to = std::numeric_limits<std::uint64_t>::max();
        continue;
      }
      rules.push_back({.collective = race.collective,
                       .ranks = ranks,
                       .nodes = nodes,
                       .any_order = any,
                       .from = follows ? rules.back().to + 1 : 0,
                       .use = winner.choice,
                       .seconds = winner.median});
    }
  }
  return rules;
}

engine::Profile tune(Communicator& world, const base::Clock& clock, const TuneOptions& options,
                     const std::string& machine, const std::function<void(const Race&)>& done) {
  base::require(options.begin >= 4 && options.begin <= options.end && options.factor >= 2,
                "sizes from {} to {} bytes by factors of {}: start at 4 or more, end not below, factor 2 or "
                "more",
                options.begin, options.end, options.factor);
  engine::Profile profile{.machine = machine, .path = {}, .rules = {}, .warnings = {}};
  if (world.size() > 1) measure_links(world, clock, profile);
  Racer racer(world, clock, options);
  std::vector<Race> races;
  for (const Collective collective : options.collectives) {
    const auto race = [&](std::uint64_t bytes) {
      Race result = racer.run(collective, bytes);
      done(result);
      return result;
    };
    std::vector<Race> row;
    for (std::uint64_t bytes = options.begin; bytes <= options.end; bytes *= options.factor)
      row.push_back(race(bytes));
    const std::vector<std::uint64_t> unsettled = borders_of(row);
    for (const std::uint64_t bytes : unsettled) row.push_back(race(bytes));
    std::ranges::sort(row, {}, &Race::bytes);
    std::ranges::move(row, std::back_inserter(races));
  }
  profile.rules = rules_of(races, world.size(), world.state().nodes());
  return profile;
}

}  // namespace tutti::bench
