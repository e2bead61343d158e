#include "bench/measure.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "bench/bound.hpp"
#include "bench/pattern.hpp"
#include "engine/communicator_state.hpp"

namespace tutti::bench {
namespace {

using schedule::Collective;

/// Calls that follow each other in a sample of a batch.
constexpr std::size_t batch_calls = 64;

/// Memory that was written to, so that no page is missing when it counts.
class Area {
 public:
  Area(Communicator& world, std::size_t bytes, Memory memory) : bytes_(bytes) {
    if (memory == Memory::arena) {
      shared_ = world.allocate<std::uint8_t>(bytes);
    } else {
      own_ = std::make_unique_for_overwrite<std::byte[]>(bytes + 64);
    }
    std::memset(data(), 1, bytes);
  }

  std::byte* data() const {
    if (!own_) return reinterpret_cast<std::byte*>(shared_.data());
    const auto address = reinterpret_cast<std::uintptr_t>(own_.get());
    return own_.get() + (64 - address % 64) % 64;
  }

  std::span<std::byte> first(std::size_t bytes) const { return {data(), std::min(bytes, bytes_)}; }

 private:
  std::size_t bytes_;
  Buffer<std::uint8_t> shared_;
  std::unique_ptr<std::byte[]> own_;
};

/// How many elements each side of a call has, from the bytes that nccl-tests means: of the longer one.
struct Shape {
  std::size_t count = 0;  ///< as the call wants it
  std::size_t in = 0;
  std::size_t out = 0;
};

Shape shape_of(const Options& options, std::uint64_t bytes, Rank ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  const bool by_rank =
      options.collective == Collective::reduce_scatter || options.collective == Collective::allgather;
  // A call of nothing would be another call.
  const std::size_t elements = std::max<std::size_t>(bytes / size_of(options.type), by_rank ? p : 1);
  switch (options.collective) {
    case Collective::reduce_scatter: return {elements / p, elements / p * p, elements / p};
    case Collective::allgather: return {elements / p, elements / p, elements / p * p};
    case Collective::allreduce:
    case Collective::broadcast:
    case Collective::reduce: break;
  }
  return {elements, elements, elements};
}

transport::NativeKind native_kind(Collective collective) {
  using transport::NativeKind;
  switch (collective) {
    case Collective::allreduce: return NativeKind::allreduce;
    case Collective::reduce_scatter: return NativeKind::reduce_scatter;
    case Collective::allgather: return NativeKind::allgather;
    case Collective::broadcast: return NativeKind::broadcast;
    case Collective::reduce: break;
  }
  return NativeKind::reduce;
}

std::size_t iterations_for(const Options& options, std::uint64_t bytes) {
  if (options.iterations > 0) return options.iterations;
  if (bytes <= 16 << 10) return 300;
  if (bytes <= 1 << 20) return 100;
  return bytes <= 16 << 20 ? 25 : 9;
}

class Bench {
 public:
  Bench(Communicator& world, transport::NativeCollectives* native, const base::Clock& clock,
        const Options& options)
      : world_(world),
        native_(native),
        clock_(clock),
        options_(options),
        pattern_(options.type, options.op, world.size()),
        input_(world, most_bytes(), options.memory),
        output_(world, most_bytes(), options.memory),
        native_input_(world, native != nullptr ? most_bytes() : 0, Memory::user),
        native_output_(world, native != nullptr ? most_bytes() : 0, Memory::user) {
    call_.algorithm = options.algorithm;
    if (!options.order.empty()) call_.order = options.order == "any" ? Order::any : Order::canonical;
  }

  Row run(std::uint64_t bytes) {
    shape_ = shape_of(options_, bytes, world_.size());
    bytes = std::max(shape_.in, shape_.out) * size_of(options_.type);
    Row row{.bytes = bytes, .count = shape_.count};
    const std::size_t iterations = row.iterations = iterations_for(options_, bytes);
    std::vector<double> ours;
    std::vector<double> mpis;
    std::size_t wrong = 0;
    std::size_t mpi_wrong = 0;
    for (std::size_t i = 0; i < options_.warmup + iterations; ++i) {
      // Who comes first takes turns too.
      for (const bool native : {i % 2 == 0, i % 2 != 0}) {
        if (native && native_ == nullptr) continue;
        const double seconds = sample(native, false, i);
        if (i < options_.warmup) continue;
        (native ? mpis : ours).push_back(seconds);
        if (options_.check && i + 2 >= options_.warmup + iterations)
          (native ? mpi_wrong : wrong) += count_wrong(native, false, i);
      }
    }
    row.out_of_place = timing(std::move(ours), wrong, bytes, checks(false, false));
    if (native_ != nullptr) {
      row.mpi = timing(std::move(mpis), mpi_wrong, bytes, checks(true, false));
      row.ratio = row.mpi->spread.median / row.out_of_place.spread.median;
    } else if (options_.in_place && options_.collective != Collective::broadcast) {
      row.in_place = in_place(iterations, bytes);
    }
    count_messages(row);
    if (options_.bound) row.bound_seconds = bound(bytes, iterations);
    return row;
  }

 private:
  /// Collective: what one more call sends.
  void count_messages(Row& row) {
    const transport::Traffic before = world_.state().traffic();
    call(input(false, false).data(), output(false, false).data());
    const transport::Traffic after = world_.state().traffic();
    std::array<std::uint64_t, 2> sent{after.messages - before.messages, after.bytes - before.bytes};
    world_.allreduce(std::span<std::uint64_t>(sent), Op::sum);
    row.sent_messages = sent[0];
    row.sent_bytes = sent[1];
  }

  std::size_t most_bytes() const {
    return std::max<std::size_t>(options_.end,
                                 static_cast<std::size_t>(world_.size()) * size_of(options_.type));
  }

  Timing in_place(std::size_t iterations, std::uint64_t bytes) {
    std::vector<double> samples;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < options_.warmup + iterations; ++i) {
      const double seconds = sample(false, true, i);
      if (i >= options_.warmup) samples.push_back(seconds);
      if (options_.check && i + 2 >= options_.warmup + iterations) wrong += count_wrong(false, true, i);
    }
    return timing(std::move(samples), wrong, bytes, checks(false, true));
  }

  std::span<std::byte> input(bool native, bool in_place) const {
    const std::size_t bytes = shape_.in * size_of(options_.type);
    if (native) return native_input_.first(bytes);
    if (!in_place) return input_.first(bytes);
    // In place: the input is this rank's block of the output, or the other way round.
    const std::size_t offset =
        options_.collective == Collective::allgather ? bytes * static_cast<std::size_t>(world_.rank()) : 0;
    return {output_.data() + offset, bytes};
  }

  std::span<std::byte> output(bool native, bool in_place) const {
    const std::size_t bytes = shape_.out * size_of(options_.type);
    if (native) return native_output_.first(bytes);
    const std::size_t offset = in_place && options_.collective == Collective::reduce_scatter
                                   ? bytes * static_cast<std::size_t>(world_.rank())
                                   : 0;
    return {output_.data() + offset, bytes};
  }

  /// Seconds of one call on this rank.
  double sample(bool native, bool in_place, std::uint64_t iteration) {
    const auto in = input(native, in_place);
    const auto out = output(native, in_place);
    const bool broadcasts = options_.collective == Collective::broadcast;
    pattern_.fill(broadcasts ? out : in, world_.rank(), iteration);
    if (options_.check && !broadcasts) spoil(out, in);
    world_.barrier();
    const std::size_t calls = options_.mode == Mode::batch ? batch_calls : 1;
    const Seconds begin = clock_.now();
    for (std::size_t i = 0; i < calls; ++i)
      native ? call_native(in.data(), out.data()) : call(in.data(), out.data());
    return (clock_.now() - begin).count() / static_cast<double>(calls);
  }

  /// No result of an earlier call may pass for one of this.
  static void spoil(std::span<std::byte> out, std::span<const std::byte> in) {
    if (out.data() == in.data()) return;
    // A byte in each page: elsewhere the turns differ.
    for (std::size_t at = 0; at < out.size(); at += 4096) {
      if (out.data() + at < in.data() || out.data() + at >= in.data() + in.size()) out[at] ^= std::byte{0x55};
    }
  }

  void call(const void* in, void* out) {
    const auto& o = options_;
    switch (o.collective) {
      case Collective::allreduce: world_.allreduce(in, out, shape_.count, o.type, o.op, call_); return;
      case Collective::reduce_scatter:
        world_.reduce_scatter(in, out, shape_.count, o.type, o.op, call_);
        return;
      case Collective::allgather: world_.allgather(in, out, shape_.count, o.type, call_); return;
      case Collective::broadcast: world_.broadcast(out, shape_.count, o.type, o.root, call_); return;
      case Collective::reduce: world_.reduce(in, out, shape_.count, o.type, o.op, o.root, call_); return;
    }
  }

  void call_native(const void* in, void* out) {
    const auto& o = options_;
    const bool broadcasts = o.collective == Collective::broadcast;
    native_->run({.kind = native_kind(o.collective),
                  .in = broadcasts ? nullptr : in,
                  .out = out,
                  .count = shape_.count,
                  .type = o.type,
                  .op = o.op,
                  .root = o.root});
  }

  /// A batch adds its own results again where it works in place; MPI's average is a sum.
  bool checks(bool native, bool in_place) const {
    return options_.check && !(in_place && options_.mode == Mode::batch) &&
           !(native && options_.op == Op::average);
  }

  std::size_t count_wrong(bool native, bool in_place, std::uint64_t iteration) const {
    if (!checks(native, in_place)) return 0;
    const auto out = output(native, in_place);
    switch (options_.collective) {
      case Collective::reduce:
        if (world_.rank() != options_.root) return 0;
        [[fallthrough]];
      case Collective::allreduce: return pattern_.wrong_sum(out, iteration);
      case Collective::reduce_scatter:
        return pattern_.wrong_part(out, iteration, shape_.count * static_cast<std::size_t>(world_.rank()));
      case Collective::broadcast: return pattern_.wrong_copy(out, options_.root, iteration);
      case Collective::allgather: break;
    }
    std::size_t wrong = 0;
    const std::size_t block = shape_.in * size_of(options_.type);
    for (Rank r = 0; r < world_.size(); ++r)
      wrong += pattern_.wrong_copy(out.subspan(block * static_cast<std::size_t>(r), block), r, iteration);
    return wrong;
  }

  /// Collective: a call lasts as long as on its slowest rank.
  Timing timing(std::vector<double> samples, std::size_t wrong, std::uint64_t bytes, bool checked) {
    world_.allreduce(std::span(samples), Op::max);
    std::uint64_t all_wrong = wrong;
    world_.allreduce(std::span(&all_wrong, 1), Op::sum);
    Timing timing{.spread = spread_of(std::move(samples)), .wrong = all_wrong, .checked = checked};
    timing.algbw = static_cast<double>(bytes) / timing.spread.median;
    timing.busbw = timing.algbw * bus_factor(options_.collective, world_.size());
    return timing;
  }

  double bound(std::uint64_t bytes, std::size_t iterations) {
    if (world_.state().node() == nullptr) {
      const double factor = bus_factor(options_.collective, static_cast<Rank>(world_.state().nodes()));
      return factor * static_cast<double>(bytes) *
             wire_rate(world_, options_.wire_bytes_per_second).seconds_per_byte;
    }
    if (bound_ == nullptr) bound_ = std::make_unique<Bound>(world_, clock_, options_.end);
    return bound_->seconds(bytes, iterations);
  }

  Communicator& world_;
  transport::NativeCollectives* native_;
  const base::Clock& clock_;
  const Options& options_;
  Pattern pattern_;
  Area input_;
  Area output_;
  Area native_input_;
  Area native_output_;
  std::unique_ptr<Bound> bound_;
  CallOptions call_;
  Shape shape_;
};

void check_bound(Communicator& world, const Options& options) {
  if (world.state().node() == nullptr) {
    base::require(wire_rate(world, options.wire_bytes_per_second).seconds_per_byte > 0,
                  "--bound: these ranks share no memory, and no rate of the wire is known: give --wire, such "
                  "as --wire 1gbit");
    return;
  }
  base::require(options.collective == Collective::allreduce,
                "--bound is known for allreduce only where ranks share memory, not for {}",
                schedule::name_of(options.collective));
}

}  // namespace

double bus_factor(Collective collective, Rank ranks) {
  const auto p = static_cast<double>(ranks);
  switch (collective) {
    case Collective::allreduce: return 2 * (p - 1) / p;
    case Collective::reduce_scatter:
    case Collective::allgather: return (p - 1) / p;
    case Collective::broadcast:
    case Collective::reduce: break;
  }
  return 1;
}

std::vector<Row> measure(Communicator& world, transport::NativeCollectives* native, const base::Clock& clock,
                         const Options& options, const std::function<void(const Row&)>& row) {
  base::require(options.begin > 0 && options.begin <= options.end,
                "sizes from {} to {} bytes: the first must be at least 1 and not above the last",
                options.begin, options.end);
  if (options.bound) check_bound(world, options);
  base::require(options.factor >= 2, "factor {}: expected at least 2", options.factor);
  base::require(!options.versus || native == nullptr || native->knows(options.type, 1),
                "MPI has no type for {}: leave --versus away", name_of(options.type));
  Bench bench(world, options.versus ? native : nullptr, clock, options);
  std::vector<Row> rows;
  for (std::uint64_t bytes = options.begin; bytes <= options.end; bytes *= options.factor) {
    rows.push_back(bench.run(bytes));
    row(rows.back());
  }
  return rows;
}

}  // namespace tutti::bench
