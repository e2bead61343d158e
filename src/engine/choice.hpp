#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schedule/schedule.hpp"

namespace tutti::engine {

/// The ways for a collective; `automatic`: the first of node, hierarchy and schedule that can.
enum class Path : std::uint8_t { automatic, node, hierarchy, schedule, library };

/// How a call is to be carried out. As text, in CallOptions::algorithm, TUTTI_ALGORITHM and profiles: "node",
/// "hierarchy", "mpi" (the MPI library's own call), or a schedule by its name, such as "ring" or
/// "binomial:radix=4:segment=256K:flight=4".
struct Choice {
  Path path = Path::automatic;
  const schedule::Algorithm* algorithm = nullptr;  ///< path schedule
  std::uint32_t radix = 0;
  std::uint64_t segment_bytes = 0;  ///< 0: chosen
  std::uint32_t in_flight = 0;      ///< segments; 0: chosen
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// Throws InvalidArgument that says what is wrong and what there is.
Choice parse_choice(schedule::Collective collective, std::string_view text);
std::string text_of(const Choice& choice);

}  // namespace tutti::engine
