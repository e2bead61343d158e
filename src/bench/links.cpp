#include "bench/links.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "bench/statistics.hpp"
#include "engine/communicator_state.hpp"
#include "kernel/kernel.hpp"

namespace tutti::bench {
namespace {

constexpr std::size_t long_bytes = 4 << 20;

template <class Call>
double median_of(const base::Clock& clock, std::size_t samples, std::size_t calls, const Call& call) {
  std::vector<double> seconds;
  call();
  for (std::size_t i = 0; i < samples; ++i) {
    const Seconds begin = clock.now();
    for (std::size_t c = 0; c < calls; ++c) call();
    seconds.push_back((clock.now() - begin).count() / static_cast<double>(calls));
  }
  return spread_of(std::move(seconds)).median;
}

/// What rank 0 has found, for all.
double agreed(Communicator& world, double mine) {
  world.broadcast(std::span(&mine, 1), 0);
  return mine;
}

/// Of rank 0: reading two arrays and writing one, a byte of them.
double adding(const base::Clock& clock) {
  std::vector<float> a(1 << 18, 1.0F);
  std::vector<float> b(1 << 18, 2.0F);
  const double seconds = median_of(clock, 15, 1, [&] {
    kernel::reduce(Op::sum, DType::f32, {a.data(), DType::f32}, {a.data(), DType::f32},
                   {b.data(), DType::f32}, a.size());
  });
  return seconds / static_cast<double>(a.size() * sizeof(float));
}

double copying(const base::Clock& clock) {
  std::vector<std::byte> from(long_bytes, std::byte{1});
  std::vector<std::byte> to(long_bytes);
  return median_of(clock, 9, 1, [&] { std::memcpy(to.data(), from.data(), long_bytes); }) /
         static_cast<double>(long_bytes);
}

/// Half a ping-pong of rank 0 with `peer`. Two broadcasts of two ranks over messages: there, and back.
double half_round_trip(Communicator& pair, bool takes_part, const base::Clock& clock, std::size_t bytes) {
  if (!takes_part) return 0;
  std::vector<std::byte> data(bytes, std::byte{1});
  const CallOptions over_messages{.algorithm = "binomial"};
  const auto there_and_back = [&] {
    pair.broadcast(data.data(), bytes, DType::u8, 0, over_messages);
    pair.broadcast(data.data(), bytes, DType::u8, 1, over_messages);
  };
  const bool is_short = bytes < 1024;
  return median_of(clock, is_short ? 25 : 7, is_short ? 16 : 1, there_and_back) / 2;
}

schedule::Link link_to(Communicator& world, Rank peer, const base::Clock& clock, double gamma) {
  const bool takes_part = world.rank() == 0 || world.rank() == peer;
  Communicator pair = world.split(takes_part ? 0 : 1, world.rank());
  const double latency = agreed(world, half_round_trip(pair, takes_part, clock, 8));
  const double rate = agreed(world, half_round_trip(pair, takes_part, clock, long_bytes));
  return {.latency_s = latency,
          .seconds_per_byte = std::max(rate - latency, 1e-12) / static_cast<double>(long_bytes),
          .reduce_seconds_per_byte = gamma};
}

}  // namespace

void measure_links(Communicator& world, const base::Clock& clock, engine::Profile& profile) {
  const double gamma = agreed(world, adding(clock));
  const std::vector<std::int32_t> nodes = world.state().nodes_of_ranks();
  const auto first = [&](bool same) {
    const auto at = std::find_if(nodes.begin() + 1, nodes.end(),
                                 [&](std::int32_t node) { return (node == nodes.front()) == same; });
    return static_cast<std::size_t>(at - nodes.begin());
  };
  if (const std::size_t peer = first(true); peer < nodes.size())
    profile.local = link_to(world, static_cast<Rank>(peer), clock, gamma);
  if (const std::size_t peer = first(false); peer < nodes.size())
    profile.remote = link_to(world, static_cast<Rank>(peer), clock, gamma);
  if (world.state().node() == nullptr) return;
  const double flags = agreed(world, median_of(clock, 25, 64, [&] { world.barrier(); }));
  profile.memory = {.latency_s = flags,
                    .seconds_per_byte = agreed(world, copying(clock)),
                    .reduce_seconds_per_byte = gamma};
}

}  // namespace tutti::bench
