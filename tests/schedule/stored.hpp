#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace tutti::schedule {

/// A schedule written out step by step, so that a test can spoil it.
class Stored final : public Schedule {
 public:
  using Round = std::vector<Step>;
  using Program = std::vector<std::vector<Round>>;  ///< [strand][round]

  explicit Stored(const Schedule& original)
      : collective_(original.collective()),
        root_(original.root()),
        blocks_(original.blocks()),
        strands_(original.strands()) {
    Sink sink;
    for (Rank rank = 0; rank < original.ranks(); ++rank) {
      auto& program = programs.emplace_back(strands_);
      for (std::uint32_t strand = 0; strand < strands_; ++strand) {
        for (std::uint32_t round = 0; round < original.rounds(rank, strand); ++round) {
          original.emit(rank, strand, round, sink);
          program[strand].emplace_back(sink.steps().begin(), sink.steps().end());
        }
      }
    }
  }

  Collective collective() const override { return collective_; }

  Rank ranks() const override { return static_cast<Rank>(programs.size()); }

  Rank root() const override { return root_; }

  std::uint32_t blocks() const override { return blocks_; }

  std::uint32_t strands() const override { return strands_; }

  std::uint32_t rounds(Rank rank, std::uint32_t strand) const override {
    return static_cast<std::uint32_t>(programs[static_cast<std::size_t>(rank)][strand].size());
  }

  void emit(Rank rank, std::uint32_t strand, std::uint32_t round, Sink& sink) const override {
    sink.begin(strand);
    for (const Step& step : programs[static_cast<std::size_t>(rank)][strand][round])
      sink.add(step.kind, step.peer, step.blocks);
  }

  std::vector<Program> programs;  ///< of each rank

 private:
  Collective collective_;
  Rank root_;
  std::uint32_t blocks_;
  std::uint32_t strands_;
};

}  // namespace tutti::schedule
