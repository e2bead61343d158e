#include "bench/bound.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "bench/statistics.hpp"
#include "engine/communicator_state.hpp"

namespace tutti::bench {
namespace {

/// Stays in the first cache.
constexpr std::size_t block_bytes = 16384;

}  // namespace

Bound::Bound(Communicator& world, const base::Clock& clock, std::uint64_t most)
    : world_(world),
      clock_(clock),
      most_(most),
      source_(most, 1),
      target_(most, 1),
      shared_(world.allocate<std::uint8_t>(most)) {
  base::require(world.state().node() != nullptr,
                "--bound measures memory that ranks share, but these ranks share none");
  std::fill(shared_.begin(), shared_.end(), std::uint8_t{1});
}

std::uint8_t* Bound::of_peer(Rank peer) const {
  return reinterpret_cast<std::uint8_t*>(
      world_.state().peer_memory(reinterpret_cast<const std::byte*>(shared_.data()), most_, peer));
}

double Bound::copy_once(std::uint64_t bytes) {
  std::fill_n(source_.begin(), bytes, static_cast<std::uint8_t>(source_[0] + 1));
  world_.barrier();
  const Seconds begin = clock_.now();
  std::memcpy(target_.data(), source_.data(), bytes);
  return (clock_.now() - begin).count();
}

double Bound::exchange_once(std::uint64_t bytes) {
  std::fill_n(shared_.begin(), bytes, static_cast<std::uint8_t>(shared_[0] + 1));
  std::vector<std::uint8_t*> peers;
  for (Rank i = 1; i < world_.size(); ++i) peers.push_back(of_peer((world_.rank() + i) % world_.size()));
  const std::uint64_t slice = bytes / static_cast<std::uint64_t>(world_.size());
  const std::uint64_t first = slice * static_cast<std::uint64_t>(world_.rank());
  std::array<std::uint8_t, block_bytes> block{};
  world_.barrier();
  const Seconds begin = clock_.now();
  for (std::uint64_t at = first; at < first + slice; at += block_bytes) {
    const std::size_t n = std::min<std::uint64_t>(block_bytes, first + slice - at);
    for (const std::uint8_t* peer : peers) std::memcpy(block.data(), peer + at, n);
    for (std::uint8_t* peer : peers) std::memcpy(peer + at, block.data(), n);
  }
  const double seconds = (clock_.now() - begin).count();
  world_.barrier();
  return seconds;
}

double Bound::slowest_median(std::vector<double> samples) {
  world_.allreduce(std::span(samples), Op::max);
  return spread_of(std::move(samples)).median;
}

double Bound::seconds(std::uint64_t bytes, std::size_t iterations) {
  std::vector<double> copies;
  std::vector<double> exchanges;
  for (std::size_t i = 0; i < std::min<std::size_t>(iterations, 50) + 2; ++i) {
    copies.push_back(copy_once(bytes));
    exchanges.push_back(exchange_once(bytes));
  }
  return std::max(slowest_median(std::move(copies)), slowest_median(std::move(exchanges)));
}

double Bound::flags(std::size_t iterations) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < iterations; ++i) {
    constexpr int calls = 64;
    const Seconds begin = clock_.now();
    for (int call = 0; call < calls; ++call) world_.barrier();
    samples.push_back((clock_.now() - begin).count() / calls);
  }
  return slowest_median(std::move(samples));
}

WireRate wire_rate(Communicator& world, double bytes_per_second) {
  if (bytes_per_second > 0) return {1 / bytes_per_second, "the rate that was given"};
  const engine::Runtime& runtime = world.state().runtime();
  if (runtime.profile && runtime.profile->remote)
    return {runtime.profile->remote->seconds_per_byte, "the rate in the profile"};
  if (runtime.options.link) return {1 / runtime.options.link->bytes_per_second, "the link's rate"};
  if (runtime.remote_link)
    return {runtime.remote_link->seconds_per_byte, "the rate measured when the session started"};
  return {};
}

}  // namespace tutti::bench
