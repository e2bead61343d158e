#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "engine/profile.hpp"
#include "tutti/communicator.hpp"

namespace tutti::bench {

struct TuneOptions {
  std::vector<schedule::Collective> collectives = {schedule::Collective::allreduce};
  std::uint64_t begin = 4;  ///< bytes of the message
  std::uint64_t end = 64 << 20;
  std::uint64_t factor = 4;
  double seconds = 0.4;  ///< about how long the last heat of a size may take for each contender
};

/// One way for a collective at one size, with what it took: medians over samples of the slowest rank.
struct Contender {
  engine::Choice choice;
  std::vector<double> samples = {};
  double median = 0;
  bool canonical = false;  ///< legal in canonical order
  bool in_race = true;
};

/// What came out at one size. Indices are of `contenders`.
struct Race {
  schedule::Collective collective = schedule::Collective::allreduce;
  std::uint64_t bytes = 0;
  std::vector<Contender> contenders;
  std::size_t untuned[2] = {0, 0};  ///< what would run without a profile: in canonical order, in any order
  std::size_t winner[2] = {0, 0};
};

/// Collective. Races the ways that tutti knows and the MPI library's own call at every size, in turns, in
/// heats from which the slow ones drop out, and once more between two sizes where others have won; measures
/// links and memory. `done` is called on every rank after
/// each size. What would run anyway stays unless another is more than 3 % faster. All ranks get the same.
engine::Profile tune(Communicator& world, const base::Clock& clock, const TuneOptions& options,
                     const std::string& machine, const std::function<void(const Race&)>& done);

/// Sizes in the middle between two whose winners differ, for races of one collective, ascending; none where
/// two are close.
std::vector<std::uint64_t> borders_of(const std::vector<Race>& races);

/// Rules that say what won in each race, neighbours that agree put together; borders lie at the geometric
/// middle of two sizes. The first and the last rule go on to the ends.
std::vector<engine::Rule> rules_of(const std::vector<Race>& races, Rank ranks, Rank nodes);

}  // namespace tutti::bench
