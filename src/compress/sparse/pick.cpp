#include "compress/sparse/pick.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compress/simd/select.hpp"

namespace tutti::compress {
namespace {

constexpr std::size_t bins = 2048;

struct Bin {
  std::size_t number;
  std::size_t rank;  ///< of what is looked for, in it
};

Bin bin_of(const std::array<std::uint32_t, bins>& histogram, std::size_t rank) {
  std::size_t number = bins - 1;
  for (; number > 0 && histogram[number] < rank; --number) rank -= histogram[number];
  return {number, rank};
}

/// The lower edge of the bin that the one at `rank` is in: at least that many reach it, if there are.
Key lower_edge(std::span<const float> values, Side side, std::size_t rank) {
  std::array<std::uint32_t, bins> histogram{};
  const Cut any{.threshold = least_key, .side = side};
  for (const float value : values) histogram[key_of(value) >> 20U] += passes(value, any) ? 1U : 0U;
  const auto edge = static_cast<Key>(bin_of(histogram, rank).number << 20U);
  return std::clamp(edge, least_key, infinity_key);
}

}  // namespace

Pass finding(std::span<const float> values) {
  return [values](std::size_t first, std::size_t count, Cut cut, std::uint32_t* found) {
    return simd::find(values.data() + first, count, cut, found);
  };
}

Pass adding(std::span<const float> in, std::span<float> values) {
  return [in, values](std::size_t first, std::size_t count, Cut cut, std::uint32_t* found) {
    return simd::add_and_find(in.data() + first, values.data() + first, count, cut, found);
  };
}

Key kth_largest(std::span<const Key> keys, std::size_t rank) {
  // Counting pays only where there is more to count than there are bins.
  if (keys.size() < bins) {
    std::vector<Key> few(keys.begin(), keys.end());
    const auto wanted = few.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::ranges::nth_element(few, wanted, std::ranges::greater());
    return *wanted;
  }
  std::vector<Key> rest;
  Key result = 0;
  // Shifts of the digits: 31 bits from above.
  constexpr std::array<unsigned, 3> shifts{20, 9, 0};
  for (const unsigned shift : shifts) {
    const Key digits = shift == 0 ? 0x1FFU : 0x7FFU;
    std::array<std::uint32_t, bins> histogram{};
    for (const Key key : keys) ++histogram[(key >> shift) & digits];
    const Bin bin = bin_of(histogram, rank);
    rank = bin.rank;
    result |= static_cast<Key>(bin.number << shift);
    if (shift == 0) break;
    std::vector<Key> members(histogram[bin.number] + 1);  // one for the write past the last
    std::size_t size = 0;
    for (const Key key : keys) {
      members[size] = key;
      size += ((key >> shift) & digits) == bin.number ? 1U : 0U;
    }
    members.resize(size);
    rest = std::move(members);
    keys = rest;
  }
  return result;
}

Key guess_from(std::span<const Key> keys, std::size_t count, std::size_t want, bool safe) {
  if (keys.empty()) return least_key;
  const auto size = static_cast<double>(keys.size());
  double rank = static_cast<double>(want) * (size / static_cast<double>(count));
  // Three standard deviations of how many of the wanted are in the sample, unless it has all.
  if (safe && keys.size() < count) rank += 3 * std::sqrt(rank) + 8;
  if (rank > size) return least_key;
  const auto whole = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(rank)));
  return std::clamp(kth_largest(keys, whole), least_key, infinity_key);
}

void put_back(Entries& entries, std::span<float> values) {
  for (std::size_t i = 0; i < entries.size(); ++i) values[entries.index[i]] = entries.value[i];
  entries.clear();
}

Key keep_largest(Entries& entries, std::size_t want, std::span<float> values) {
  std::vector<Key> keys(entries.size());
  std::ranges::transform(entries.value, keys.begin(), key_of);
  if (keys.size() <= want) {
    const auto least = std::ranges::min_element(keys);
    return least == keys.end() ? least_key : std::min(*least, infinity_key);
  }
  const Key smallest = kth_largest(keys, want);
  auto equal = want - static_cast<std::size_t>(
                          std::ranges::count_if(keys, [smallest](Key key) { return key > smallest; }));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    bool stays = keys[i] > smallest;
    if (keys[i] == smallest && equal > 0) {
      stays = true;
      --equal;
    }
    if (stays) {
      entries.index[kept] = entries.index[i];
      entries.value[kept++] = entries.value[i];
    } else {
      values[entries.index[i]] = entries.value[i];
    }
  }
  entries.index.resize(kept);
  entries.value.resize(kept);
  return std::min(smallest, infinity_key);
}

Key pick(const Pass& pass, std::span<float> values, Cut cut, Limit limit, Entries& entries) {
  entries.clear();
  std::array<std::uint32_t, run_length> found;
  for (std::size_t first = 0; first < values.size(); first += run_length) {
    const std::size_t length = std::min(run_length, values.size() - first);
    const std::size_t more = pass(first, length, cut, found.data());
    std::size_t at = entries.size();
    entries.index.resize(at + more);
    entries.value.resize(at + more);
    for (std::size_t i = 0; i < more; ++i, ++at) {
      const std::size_t element = first + found[i];
      entries.index[at] = static_cast<std::uint32_t>(element);
      entries.value[at] = canonical(values[element]);
      values[element] = 0;
    }
    if (entries.size() <= limit.most) continue;
    // Not less than an eighth: what came first may be unlike the rest.
    const double seen = static_cast<double>(first + length) / static_cast<double>(values.size());
    const auto wanted =
        static_cast<std::size_t>(std::ceil(static_cast<double>(limit.want) * std::max(seen, 0.125)));
    cut.threshold = std::max(cut.threshold, keep_largest(entries, wanted, values));
  }
  return cut.threshold;
}

Key pick_exactly(const Pass& pass, std::span<float> values, Cut guess, std::size_t want, Entries& entries) {
  pick(pass, values, guess, {.want = want}, entries);
  if (entries.size() < want && guess.threshold > least_key) {
    put_back(entries, values);
    const Cut lower{.threshold = lower_edge(values, guess.side, want), .side = guess.side};
    pick(finding(values), values, lower, {.want = want}, entries);
  }
  return keep_largest(entries, want, values);
}

std::string name_at(std::string_view name, std::uint64_t offset) {
  return fmt::format("{}@{}", name, offset);
}

}  // namespace tutti::compress
