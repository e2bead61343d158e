#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "engine/local.hpp"
#include "schedule/schedule.hpp"
#include "support/catch.hpp"
#include "tutti/communicator.hpp"

using namespace tutti;
using namespace tutti::engine;

namespace {

/// Bits of the sum of inexact data, on every rank, for one way of doing it. Elements are seeded by index, so
/// that a part of the buffer summed alone must give the same bits as within the whole.
template <class T>
std::set<std::string> bits_of(Rank ranks, const LocalOptions& options, const CallOptions& call,
                              std::size_t part, Op op) {
  constexpr std::size_t count = 3000;
  std::mutex mutex;
  std::set<std::string> results;
  run_local(ranks, options, [&](Communicator& world) {
    std::vector<T> data(count);
    for (std::size_t i = 0; i < count; ++i) {
      base::Random random(static_cast<std::uint64_t>(world.rank()) + 1, i);
      if constexpr (sizeof(T) == 2) {
        // Any finite half will do; these are of mixed sign and size.
        data[i].bits = static_cast<std::uint16_t>(random.below(0x7800) | (random.below(2) << 15U));
        if constexpr (std::is_same_v<T, float16>) data[i].bits &= 0xbfff;
      } else {
        data[i] = static_cast<T>(random.normal());
      }
    }
    for (std::size_t at = 0; at < count; at += part) {
      world.allreduce(std::span(data).subspan(at, std::min(part, count - at)), op, call);
    }
    std::string bits(count * sizeof(T), '\0');
    std::memcpy(bits.data(), data.data(), bits.size());
    const std::scoped_lock lock(mutex);
    results.insert(std::move(bits));
  });
  return results;
}

template <class T>
void same_bits_everywhere(Op op) {
  for (const Rank ranks : {2, 3, 4, 5, 6, 7, 8, 13}) {
    std::set<std::string> all;
    for (const auto& algorithm : schedule::algorithms()) {
      if (algorithm.collective != schedule::Collective::allreduce ||
          !schedule::check(algorithm, ranks).canonical)
        continue;
      for (const std::uint64_t segment : {100U, 4096U, 1U << 20U}) {
        for (const std::size_t part : {3000U, 700U}) {
          LocalOptions options;
          options.core.segment_bytes = segment;
          options.core.timeout = Seconds(60);
          const auto bits = bits_of<T>(ranks, options, {.algorithm = algorithm.name}, part, op);
          all.insert(bits.begin(), bits.end());
        }
      }
    }
    LocalOptions options;
    const auto chosen = bits_of<T>(ranks, options, {}, 3000, op);
    all.insert(chosen.begin(), chosen.end());
    CHECK(all.size() == 1);
  }
}

}  // namespace

TEST_CASE("sums do not depend on algorithm, segment size, message size or rank: one set of bits") {
  same_bits_everywhere<float>(Op::sum);
  same_bits_everywhere<double>(Op::average);
  same_bits_everywhere<bfloat16>(Op::sum);
  same_bits_everywhere<float16>(Op::average);
  same_bits_everywhere<float>(Op::product);
}

TEST_CASE("ring and double tree agree between ranks, whatever their order") {
  for (const char* name : {"ring", "double_tree"}) {
    for (const Rank ranks : {2, 3, 5, 8}) {
      CHECK(bits_of<float>(ranks, {}, {.algorithm = name}, 3000, Op::sum).size() == 1);
      CHECK(bits_of<bfloat16>(ranks, {}, {.algorithm = name}, 3000, Op::average).size() == 1);
    }
  }
}

TEST_CASE("any order is allowed to choose ring; canonical order never does") {
  // The chosen algorithm's bits at 5 ranks equal those of a canonical one.
  const auto canonical = bits_of<float>(5, {}, {.algorithm = "recursive_doubling"}, 3000, Op::sum);
  CHECK(bits_of<float>(5, {}, {.order = Order::canonical}, 3000, Op::sum) == canonical);
  LocalOptions any;
  any.core.any_order = true;
  CHECK(bits_of<float>(5, any, {.order = Order::canonical}, 3000, Op::sum) == canonical);
}
