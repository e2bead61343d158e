#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bench/statistics.hpp"
#include "schedule/schedule.hpp"
#include "transport/mpi_native.hpp"
#include "tutti/communicator.hpp"

namespace tutti::bench {

enum class Mode : std::uint8_t { fresh, batch };
enum class Memory : std::uint8_t { user, arena };

struct Options {
  schedule::Collective collective = schedule::Collective::allreduce;
  std::uint64_t begin = 4;  ///< bytes of the message, as nccl-tests counts them
  std::uint64_t end = 64 << 20;
  std::uint64_t factor = 2;
  std::size_t iterations = 0;  ///< 0: many for short messages, few for long ones
  std::size_t warmup = 5;
  DType type = DType::f32;
  Op op = Op::sum;
  Rank root = 0;
  bool check = true;
  bool versus = false;
  bool bound = false;
  double wire_bytes_per_second = 0;  ///< of a node's link, for the bound; 0: what the session knows
  bool in_place = true;              ///< also in place, where nothing is compared with MPI
  Mode mode = Mode::fresh;
  Memory memory = Memory::user;
  std::string algorithm;
  std::string order;
  std::string link;  ///< what every rank is behind, for the report; empty: nothing
};

/// One kind of call at one size.
struct Timing {
  Spread spread;
  double algbw = 0;  ///< bytes of the message a second
  double busbw = 0;
  std::size_t wrong = 0;  ///< elements of the last two results, over all ranks
  bool checked = true;    ///< false: nobody has looked
};

struct Row {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  std::size_t iterations = 0;
  Timing out_of_place;
  std::optional<Timing> in_place;
  std::optional<Timing> mpi;
  std::uint64_t sent_messages = 0;  ///< of one call, over all ranks; what goes through shared memory is none
  std::uint64_t sent_bytes = 0;     ///< their payload
  double ratio = 0;                 ///< MPI's median by ours
  double bound_seconds = 0;         ///< 0: not measured
};

/// algbw to busbw, as nccl-tests has it (its doc/PERFORMANCE.md).
double bus_factor(schedule::Collective collective, Rank ranks);

/// Collective. Measures every size; `row` is called on every rank when a size is done. `native` is needed for
/// a comparison only. Throws InvalidArgument for options that cannot be met.
std::vector<Row> measure(Communicator& world, transport::NativeCollectives* native, const base::Clock& clock,
                         const Options& options, const std::function<void(const Row&)>& row);

}  // namespace tutti::bench
