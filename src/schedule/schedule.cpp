#include "schedule/schedule.hpp"

#include <array>

#include "base/error.hpp"

namespace tutti::schedule {

std::string_view name_of(Collective collective) noexcept {
  constexpr std::array<std::string_view, collective_count> names{"allreduce", "reduce_scatter", "allgather",
                                                                 "broadcast", "reduce"};
  return names[static_cast<std::size_t>(collective)];
}

std::string_view name_of(Kind kind) noexcept {
  constexpr std::array<std::string_view, 5> names{"send", "recv", "recv_reduce", "recv_slot", "reduce_slots"};
  return names[static_cast<std::size_t>(kind)];
}

const Algorithm* find(Collective collective, std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

const Algorithm& require_algorithm(Collective collective, std::string_view name) {
  if (const Algorithm* found = find(collective, name)) return *found;
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) names.push_back(algorithm.name);
  }
  base::fail<InvalidArgument>("there is no {} algorithm '{}'; known are {}", name_of(collective), name,
                              fmt::join(names, ", "));
}

Generated::Generated(const Algorithm& algorithm, Rank ranks, Rank root, std::uint32_t radix)
    : algorithm_(algorithm), shape_{ranks, 0, radix, root} {
  base::require(ranks >= 1 && root >= 0 && root < ranks && radix >= 2 && algorithm.accepts(shape_),
                "{} '{}' does not work for {} ranks, root {}, radix {}", name_of(algorithm.collective),
                algorithm.name, ranks, root, radix);
  blocks_ = algorithm.blocks(shape_);
  strands_ = algorithm.strands(shape_);
}

std::uint32_t Generated::rounds(Rank rank, std::uint32_t strand) const {
  Shape shape = shape_;
  shape.rank = rank;
  return algorithm_.rounds(shape, strand);
}

void Generated::emit(Rank rank, std::uint32_t strand, std::uint32_t round, Sink& sink) const {
  Shape shape = shape_;
  shape.rank = rank;
  sink.begin(strand);
  algorithm_.emit(shape, strand, round, sink);
}

Verdict check(const Algorithm& algorithm, Rank ranks, Rank root, std::uint32_t radix) {
  return check(Generated(algorithm, ranks, root, radix));
}

}  // namespace tutti::schedule
