#include "schedule/verify.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.hpp"

namespace tutti::schedule {
namespace {

struct Task {
  std::size_t row;
  Rank ranks;
};

struct Tally {
  Proof proof;
  std::set<Rank> not_canonical;
};

std::vector<Rank> roots_of(const Algorithm& algorithm, Rank ranks) {
  if (algorithm.collective != Collective::broadcast && algorithm.collective != Collective::reduce) return {0};
  std::set<Rank> roots{0, std::min<Rank>(1, ranks - 1), ranks - 1};
  return {roots.begin(), roots.end()};
}

/// All shapes of one algorithm at one rank count.
Proof prove(const Algorithm& algorithm, Rank ranks) {
  const auto begin = std::chrono::steady_clock::now();
  Proof proof{.algorithm = &algorithm};
  for (const std::uint32_t radix : algorithm.radices) {
    for (const Rank root : roots_of(algorithm, ranks)) {
      if (!algorithm.accepts({ranks, 0, radix, root})) continue;
      const Verdict verdict = check(algorithm, ranks, root, radix);
      ++proof.shapes;
      proof.steps += verdict.steps;
      proof.correct += verdict.correct ? 1 : 0;
      proof.agrees += verdict.agrees ? 1 : 0;
      proof.canonical += verdict.canonical ? 1 : 0;
      if (!verdict.correct && proof.first_defect.empty()) {
        proof.first_defect =
            fmt::format("{} ranks, root {}, radix {}: {}", ranks, root, radix, verdict.first_defect);
      }
    }
  }
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return proof;
}

void merge(Tally& tally, const Proof& part, Rank ranks) {
  Proof& total = tally.proof;
  total.shapes += part.shapes;
  total.correct += part.correct;
  total.agrees += part.agrees;
  total.canonical += part.canonical;
  total.steps += part.steps;
  total.seconds += part.seconds;
  if (total.first_defect.empty()) total.first_defect = part.first_defect;
  if (part.canonical != part.shapes) tally.not_canonical.insert(ranks);
}

std::string canonical_text(const Proof& proof) {
  if (proof.canonical == proof.shapes) return "all";
  if (proof.canonical_up_to > 0) return fmt::format("p <= {}", proof.canonical_up_to);
  return fmt::format("{} of {}", proof.canonical, proof.shapes);
}

std::string part_text(std::uint64_t part, std::uint64_t all) {
  return part == all ? "all" : fmt::format("{} of {}", part, all);
}

}  // namespace

std::vector<Proof> verify(const Sweep& sweep) {
  base::require(sweep.first >= 1 && sweep.first <= sweep.last,
                "ranks {}..{}: expected 1 or more, the smaller first", sweep.first, sweep.last);
  std::vector<Tally> tallies;
  for (const Algorithm& algorithm : algorithms()) {
    if (sweep.collective && algorithm.collective != *sweep.collective) continue;
    if (!sweep.algorithm.empty() && algorithm.name != sweep.algorithm) continue;
    tallies.push_back({{.algorithm = &algorithm}, {}});
  }
  base::require(!tallies.empty(), "there is no algorithm '{}'{}; `tutti verify` without options lists all",
                sweep.algorithm, sweep.collective ? fmt::format(" for {}", name_of(*sweep.collective)) : "");
  // The big ones first, so that no thread is left with one at the end.
  std::vector<Task> tasks;
  for (Rank ranks = sweep.last; ranks >= sweep.first; --ranks) {
    for (std::size_t row = 0; row < tallies.size(); ++row) tasks.push_back({row, ranks});
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      const Task task = tasks[i];
      const Proof part = prove(*tallies[task.row].proof.algorithm, task.ranks);
      const std::scoped_lock lock(mutex);
      merge(tallies[task.row], part, task.ranks);
      if (sweep.progress) sweep.progress(++done, tasks.size());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 1; t < sweep.threads; ++t) threads.emplace_back(work);
    work();
  }
  std::vector<Proof> proofs;
  for (Tally& tally : tallies) {
    if (sweep.first == 1 && !tally.not_canonical.empty())
      tally.proof.canonical_up_to = *tally.not_canonical.begin() - 1;
    proofs.push_back(std::move(tally.proof));
  }
  return proofs;
}

std::string table_of(const std::vector<Proof>& proofs, const Sweep& sweep) {
  std::string text = fmt::format("ranks {}..{}, every radix; rooted collectives: roots 0, 1 and p-1\n\n",
                                 sweep.first, sweep.last);
  text += fmt::format("{:<15} {:<19} {:>7} {:>8} {:>8} {:>10} {:>14} {:>9}\n", "collective", "algorithm",
                      "shapes", "correct", "agree", "canonical", "steps", "seconds");
  for (const Proof& proof : proofs) {
    text += fmt::format("{:<15} {:<19} {:>7} {:>8} {:>8} {:>10} {:>14} {:>9.2f}\n",
                        name_of(proof.algorithm->collective), proof.algorithm->name, proof.shapes,
                        part_text(proof.correct, proof.shapes), part_text(proof.agrees, proof.shapes),
                        canonical_text(proof), proof.steps, proof.seconds);
  }
  return text;
}

}  // namespace tutti::schedule
