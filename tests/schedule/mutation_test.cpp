// The checker is judged by schedules that were spoilt at random: every one whose execution comes out
// differently must be rejected.
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "schedule/executor.hpp"
#include "schedule/stored.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::schedule;

namespace {

constexpr int wanted_mutants = 4000;

struct Place {
  Stored::Round* round = nullptr;
  std::size_t step = 0;
};

/// A random step of a random rank; none if the schedule has no steps.
Place pick(Stored& schedule, base::Random& random) {
  std::vector<Place> all;
  for (auto& program : schedule.programs) {
    for (auto& strand : program) {
      for (auto& round : strand) {
        for (std::size_t i = 0; i < round.size(); ++i) all.push_back({&round, i});
      }
    }
  }
  return all.empty() ? Place{} : all[random.below(all.size())];
}

void shift(Block& blocks, std::uint32_t all, base::Random& random) {
  switch (random.below(3)) {
    case 0:
      if (blocks.last < all) ++blocks.first, ++blocks.last;
      break;
    case 1:
      if (blocks.first > 0) --blocks.first, --blocks.last;
      break;
    default:
      if (blocks.size() > 1) --blocks.last;
  }
}

void swap_rounds(Stored& schedule, base::Random& random) {
  auto& program = schedule.programs[random.below(schedule.programs.size())];
  auto& strand = program[random.below(program.size())];
  if (strand.size() < 2) return;
  std::swap(strand[random.below(strand.size())], strand[random.below(strand.size())]);
}

/// Spoils one thing. Returns what.
std::string mutate(Stored& schedule, base::Random& random) {
  const Place place = pick(schedule, random);
  if (place.round == nullptr) return "nothing";
  Step& step = (*place.round)[place.step];
  const auto at = place.round->begin() + static_cast<std::ptrdiff_t>(place.step);
  switch (random.below(7)) {
    case 0: place.round->erase(at); return "drop";
    case 1: {
      const Step copy = step;
      place.round->insert(at, copy);
      return "duplicate";
    }
    case 2: step.peer = static_cast<Rank>(random.below(schedule.programs.size())); return "retarget";
    case 3: shift(step.blocks, schedule.blocks(), random); return "shift";
    case 4: step.kind = static_cast<Kind>(random.below(5)); return "kind";
    case 5: {
      const Place other = pick(schedule, random);
      std::swap(step, (*other.round)[other.step]);
      return "swap steps";
    }
    default: swap_rounds(schedule, random); return "swap rounds";
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Whether users of the collective would see a difference from the unspoilt schedule.
bool changed(const Outcome& mutant, const Outcome& original, const Verdict& proved) {
  if (!mutant.failure.empty() || !mutant.values_right) return true;
  if (proved.agrees && !mutant.ranks_agree) return true;
  return proved.canonical && !same_bits(mutant.inexact, original.inexact);
}

}  // namespace

TEST_CASE("execution and checker agree on every unspoilt schedule") {
  for (const Algorithm& algorithm : algorithms()) {
    for (Rank ranks = 1; ranks <= 10; ++ranks) {
      for (const std::uint32_t radix : algorithm.radices) {
        const Generated schedule(algorithm, ranks, ranks / 2, radix);
        const Verdict verdict = check(schedule);
        const Outcome outcome = execute(schedule);
        INFO(name_of(algorithm.collective)
             << " " << algorithm.name << " " << ranks << ": " << verdict.first_defect << outcome.failure);
        CHECK(verdict.correct);
        CHECK(outcome.failure.empty());
        CHECK(outcome.values_right);
        CHECK(outcome.ranks_agree == verdict.agrees);
      }
    }
  }
}

TEST_CASE("every mutant that changes the outcome is rejected") {
  base::Random random(20260501);
  int mutants = 0;
  int changed_outcome = 0;
  int harmless = 0;
  int rejected_harmless = 0;
  std::vector<std::string> missed;
  while (mutants < wanted_mutants) {
    const auto all = algorithms();
    const Algorithm& algorithm = all[random.below(all.size())];
    const auto ranks = static_cast<Rank>(2 + random.below(8));
    const auto root = static_cast<Rank>(random.below(static_cast<std::uint64_t>(ranks)));
    const Generated original(algorithm, ranks, root,
                             algorithm.radices[random.below(algorithm.radices.size())]);
    Stored mutant(original);
    const std::string what = mutate(mutant, random);
    ++mutants;
    const Verdict proved = check(original);
    const Verdict verdict = check(mutant);
    const bool rejected =
        !verdict.correct || (proved.agrees && !verdict.agrees) || (proved.canonical && !verdict.canonical);
    if (!changed(execute(mutant), execute(original), proved)) {
      ++harmless;
      rejected_harmless += rejected ? 1 : 0;
      continue;
    }
    ++changed_outcome;
    if (!rejected)
      missed.push_back(fmt::format("{} {} p={} root={}: {}", name_of(algorithm.collective), algorithm.name,
                                   ranks, root, what));
    if (rejected && !verdict.correct) CHECK_FALSE(verdict.first_defect.empty());
  }
  fmt::print(
      "mutation test: {} mutants, {} change the outcome, {} of them rejected; {} harmless, {} of them "
      "rejected too\n",
      mutants, changed_outcome, changed_outcome - static_cast<int>(missed.size()), harmless,
      rejected_harmless);
  INFO(fmt::format("{}", fmt::join(missed, "\n")));
  CHECK(missed.empty());
  CHECK(changed_outcome >= 500);
}
