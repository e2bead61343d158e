#include "conformance/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>

#include "base/random.hpp"
#include "conformance/reference.hpp"

namespace tutti::conformance {
namespace {

using schedule::Collective;

constexpr std::size_t guard_bytes = 64;
constexpr std::byte guard{0xa5};

/// Memory of `bytes` at an odd place, with guards on both sides.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misalignment, std::byte fill)
      : own_(bytes + misalignment + 2 * guard_bytes + 64), memory_(own_), bytes_(bytes) {
    lay_out(misalignment, fill);
  }

  /// In the arena: collective; `most` is the largest size of any rank.
  Buffer(Communicator& world, std::size_t most, std::size_t bytes, std::size_t misalignment, std::byte fill)
      : shared_(world.allocate<std::uint8_t>(most + 2 * guard_bytes + 128)),
        memory_(std::as_writable_bytes(shared_.span())),
        bytes_(bytes) {
    lay_out(misalignment, fill);
  }

  std::byte* data() { return memory_.data() + offset_; }

  std::span<std::byte> bytes() { return {data(), bytes_}; }

  bool guards_intact() const {
    const auto whole = [](std::span<const std::byte> part) {
      return std::ranges::all_of(part, [](std::byte b) { return b == guard; });
    };
    return whole(memory_.first(offset_)) && whole(memory_.subspan(offset_ + bytes_));
  }

  void put(std::size_t at, std::span<const std::byte> content) {
    if (!content.empty()) std::memcpy(data() + at, content.data(), content.size());
  }

 private:
  void lay_out(std::size_t misalignment, std::byte fill) {
    std::ranges::fill(memory_, guard);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    offset_ = (64 - address % 64) % 64 + misalignment + guard_bytes;
    std::fill_n(data(), bytes_, fill);
  }

  tutti::Buffer<std::uint8_t> shared_;
  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
  std::size_t offset_ = 0;
  std::size_t bytes_;
};

/// The buffers of one call on one rank, in elements, and what must be in the output afterwards.
struct Layout {
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t in_at = 0;   ///< where the input starts in the buffer of an in-place call
  std::size_t out_at = 0;  ///< and the output
  std::vector<std::byte> input;
  std::vector<std::byte> expected;  ///< empty: this rank's output is not written
};

std::vector<std::byte> slice(const std::vector<std::byte>& all, std::size_t first, std::size_t bytes) {
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {at, at + static_cast<std::ptrdiff_t>(bytes)};
}

Layout layout_of(const Case& test, Rank rank, Rank ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t n = test.count;
  const std::size_t width = size_of(test.type);
  Layout layout{.in = n, .out = n};
  switch (test.collective) {
    case Collective::allreduce: layout.expected = reduced(test, ranks, n); break;
    case Collective::reduce:
      if (rank == test.root) layout.expected = reduced(test, ranks, n);
      break;
    case Collective::broadcast: layout.expected = contribution(test, test.root, n); break;
    case Collective::reduce_scatter:
      layout.in = n * p;
      layout.out_at = r * n;
      layout.expected = slice(reduced(test, ranks, n * p), r * n * width, n * width);
      break;
    case Collective::allgather: {
      std::vector<std::size_t> counts(p, n);
      if (test.uneven) counts = uneven_counts(test, ranks);
      layout.in = counts[r];
      layout.out = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      layout.in_at = std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
      for (std::size_t peer = 0; peer < p; ++peer) {
        const auto part = contribution(test, static_cast<Rank>(peer), counts[peer]);
        layout.expected.insert(layout.expected.end(), part.begin(), part.end());
      }
      break;
    }
  }
  layout.input = contribution(test, rank, layout.in);
  return layout;
}

void call(Communicator& world, const Case& test, const void* in, void* out, const Layout& layout) {
  CallOptions options{.name = "conformance", .prescale = test.prescale, .algorithm = test.algorithm};
  if (test.any_order) options.order = Order::any;
  const std::size_t n = test.count;
  Work work;
  switch (test.collective) {
    case Collective::allreduce:
      if (!test.async) return world.allreduce(in, out, n, test.type, test.op, options);
      work = world.allreduce_async(in, out, n, test.type, test.op, options);
      break;
    case Collective::reduce_scatter:
      if (!test.async) return world.reduce_scatter(in, out, n, test.type, test.op, options);
      work = world.reduce_scatter_async(in, out, n, test.type, test.op, options);
      break;
    case Collective::reduce:
      if (!test.async) return world.reduce(in, out, n, test.type, test.op, test.root, options);
      work = world.reduce_async(in, out, n, test.type, test.op, test.root, options);
      break;
    case Collective::broadcast:
      if (!test.async) return world.broadcast(out, n, test.type, test.root, options);
      work = world.broadcast_async(out, n, test.type, test.root, options);
      break;
    case Collective::allgather:
      if (test.uneven)
        return world.allgatherv(in, layout.in, out, layout.out, uneven_counts(test, world.size()), test.type,
                                options);
      if (!test.async) return world.allgather(in, out, n, test.type, options);
      work = world.allgather_async(in, out, n, test.type, options);
      break;
  }
  work.wait();
}

std::string compare(const Case& test, Rank rank, Rank ranks, std::span<const std::byte> found,
                    const std::vector<std::byte>& expected) {
  if (std::ranges::equal(found, expected)) return {};
  const std::size_t width = size_of(test.type);
  const std::size_t elements = expected.size() / width;
  const bool any_bits = !test.exact && !canonical(test, ranks);
  if (any_bits) {
    const std::size_t block =
        test.collective == Collective::reduce_scatter ? static_cast<std::size_t>(rank) * elements : 0;
    const double error = order_error(test, ranks, block, elements, found.data(), expected.data());
    return error <= 1 ? "" : fmt::format("{:.3g} times the error that another order may make", error);
  }
  std::size_t wrong = 0;
  std::size_t first = elements;
  for (std::size_t i = 0; i < elements; ++i) {
    if (std::memcmp(found.data() + i * width, expected.data() + i * width, width) == 0) continue;
    ++wrong;
    first = std::min(first, i);
  }
  return fmt::format("{} of {} elements wrong, the first at {}", wrong, elements, first);
}

}  // namespace

std::string describe(const Case& test) {
  return fmt::format("{} {} {} {} count={} misalignment={} root={} prescale={}{}{}{}{}{}{} seed={}",
                     schedule::name_of(test.collective), test.algorithm.empty() ? "(chosen)" : test.algorithm,
                     name_of(test.type), name_of(test.op), test.count, test.misalignment, test.root,
                     test.prescale, test.in_place ? " in-place" : "", test.async ? " async" : "",
                     test.exact ? "" : " inexact",
                     test.uneven      ? " uneven"
                     : test.any_order ? " any-order"
                                      : "",
                     test.arena ? " arena" : "", test.mixed ? " mixed" : "", test.seed);
}

bool canonical(const Case& test, Rank ranks) {
  if (test.algorithm.empty()) return true;
  if (!is_floating(test.type) || test.op == Op::min || test.op == Op::max) return true;
  if (test.collective == Collective::allgather || test.collective == Collective::broadcast) return true;
  const auto* algorithm = schedule::find(test.collective, test.algorithm);
  if (algorithm == nullptr) return ranks <= 2;  // MPI's own call
  return schedule::check(*algorithm, ranks, test.root, algorithm->radices.front()).canonical;
}

std::string run_case(Communicator& world, const Case& given) {
  Case test = given;
  bool arena = test.arena;
  if (test.mixed) {
    const std::uint64_t bits = base::mix(test.seed * 64 + static_cast<std::uint64_t>(world.rank()));
    test.in_place = (bits & 1U) != 0;
    arena = arena && (bits & 2U) != 0;
    test.misalignment = bits >> 8U & 63U;
    test.async = (bits & 4U) != 0;
  }
  const Layout layout = layout_of(test, world.rank(), world.size());
  const std::size_t width = size_of(test.type);
  const bool whole = test.in_place || test.collective == Collective::broadcast;
  constexpr std::byte poison{0xee};
  const std::size_t most = 2 * (test.count + 1) * static_cast<std::size_t>(world.size()) * width;
  const auto buffer = [&](std::size_t elements) {
    Buffer in_arena =
        test.arena ? Buffer(world, most, elements * width, test.misalignment, poison) : Buffer(0, 0, poison);
    return arena ? std::move(in_arena) : Buffer(elements * width, test.misalignment, poison);
  };
  Buffer input = buffer(layout.in);
  Buffer output = buffer(layout.out);
  Buffer shared = buffer(std::max(layout.in, layout.out));
  if (test.arena) world.barrier();  // what is filled above must not be read before
  if (whole && (test.collective != Collective::broadcast || world.rank() == test.root)) {
    shared.put(layout.in_at * width, layout.input);
  }
  input.put(0, layout.input);

  std::byte* in = whole ? shared.data() + layout.in_at * width : input.data();
  std::byte* out = whole ? shared.data() + layout.out_at * width : output.data();
  call(world, test, in, out, layout);

  std::string problem;
  if (!layout.expected.empty())
    problem = compare(test, world.rank(), world.size(), {out, layout.expected.size()}, layout.expected);
  if (problem.empty() && layout.expected.empty() &&
      !std::ranges::equal(whole ? shared.bytes() : input.bytes(), layout.input)) {
    problem = "the buffer of a rank that gets no result was written";
  }
  if (problem.empty() && !whole && !std::ranges::equal(input.bytes(), layout.input))
    problem = "the input was written";
  if (!input.guards_intact() || !output.guards_intact() || !shared.guards_intact())
    problem += " bytes beside a buffer were written";
  if (problem.empty()) return {};
  return fmt::format("rank {} of {}: {}: {}", world.rank(), world.size(), describe(test), problem);
}

std::vector<Case> systematic_cases(Rank ranks) {
  std::vector<Case> cases;
  const auto p = static_cast<std::size_t>(ranks);
  const std::array<std::size_t, 9> counts{0, 1, p - 1, p, p + 1, 63, 257, 1024, 4099};
  std::uint64_t seed = 1;
  for (const auto& algorithm : schedule::algorithms()) {
    if (!algorithm.accepts({ranks, 0, algorithm.radices.front(), 0})) continue;
    const bool reduces =
        algorithm.collective != Collective::allgather && algorithm.collective != Collective::broadcast;
    for (std::size_t t = 0; t < dtype_count; ++t) {
      for (std::size_t o = 0; o < (reduces ? op_count : 1); ++o) {
        Case test{.collective = algorithm.collective,
                  .algorithm = std::string(algorithm.name),
                  .type = static_cast<DType>(t),
                  .op = static_cast<Op>(o),
                  .seed = ++seed};
        // The cross product would be too long: sizes, placement and data turn with the case number.
        test.count = counts[seed % counts.size()];
        test.misalignment = (seed % 3) * (seed % 5) * 7 % 64;
        test.in_place = seed % 2 == 0;
        test.async = seed % 7 == 0;
        test.exact = seed % 4 < 2;
        test.root = static_cast<Rank>(seed % p);
        test.prescale = is_floating(test.type) && reduces && seed % 5 == 0 ? 0.25 : 1.0;
        test.uneven = algorithm.collective == Collective::allgather && seed % 3 == 0;
        cases.push_back(test);
      }
    }
  }
  return cases;
}

Case random_case(std::uint64_t seed, Rank ranks) {
  base::Random random(seed, 7);
  std::vector<const schedule::Algorithm*> usable;
  for (const auto& algorithm : schedule::algorithms()) {
    if (algorithm.accepts({ranks, 0, algorithm.radices.front(), 0})) usable.push_back(&algorithm);
  }
  const auto& algorithm = *usable[random.below(usable.size())];
  const bool reduces =
      algorithm.collective != Collective::allgather && algorithm.collective != Collective::broadcast;
  Case test{.collective = algorithm.collective, .seed = seed};
  if (random.below(3) != 0) test.algorithm = algorithm.name;
  test.type = static_cast<DType>(random.below(dtype_count));
  test.op = static_cast<Op>(random.below(op_count));
  constexpr std::array<std::size_t, 5> limits{4, 40, 400, 4000, 20000};
  test.count = random.below(limits[random.below(limits.size())]);
  test.misalignment = random.below(64);
  test.root = static_cast<Rank>(random.below(static_cast<std::uint64_t>(ranks)));
  test.in_place = random.below(2) == 0;
  test.async = random.below(4) == 0;
  test.exact = random.below(2) == 0;
  test.uneven = algorithm.collective == Collective::allgather && random.below(2) == 0;
  if (reduces && is_floating(test.type) && random.below(4) == 0) test.prescale = 0.375;
  return test;
}

Case random_node_case(std::uint64_t seed, Rank ranks) {
  Case test = random_case(seed, ranks);
  base::Random random(seed, 9);
  test.algorithm.clear();
  test.arena = random.below(2) == 0;
  test.mixed = random.below(3) == 0;
  return test;
}

Case random_library_case(std::uint64_t seed, Rank ranks) {
  Case test = random_case(seed, ranks);
  base::Random random(seed, 11);
  constexpr std::array types{DType::f32, DType::f64, DType::i8,  DType::u8,
                             DType::i32, DType::u32, DType::i64, DType::u64};
  constexpr std::array ops{Op::sum, Op::product, Op::average};
  const auto any = [&](const auto& list) { return list[random.below(list.size())]; };
  test.algorithm = "mpi";
  if (test.collective == Collective::reduce) test.collective = Collective::allreduce;
  test.type = any(types);
  if (is_floating(test.type)) test.op = any(ops);
  if (!is_floating(test.type) && test.op == Op::average) test.op = Op::sum;
  const bool sums = test.op == Op::sum || test.op == Op::product;
  if (!is_floating(test.type) && !is_signed(test.type) && !sums) test.op = Op::sum;
  if (test.type == DType::u8) test.type = DType::u64;
  if (test.type == DType::i8) test.op = random.below(2) == 0 ? Op::min : Op::max;
  test.prescale = 1.0;
  test.uneven = false;
  test.any_order = ranks > 2 || random.below(2) == 0;
  test.mixed = random.below(3) == 0;
  test.arena = random.below(4) == 0;
  return test;
}

}  // namespace tutti::conformance
