#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/arithmetic/select.hpp"

/// Takes the largest out of an array of values, in one pass if a good threshold is known.
namespace tutti::compress {

/// What was taken, by increasing index; NaN in its one form.
struct Entries {
  std::vector<std::uint32_t> index;
  std::vector<float> value;

  std::size_t size() const { return index.size(); }

  void clear() {
    index.clear();
    value.clear();
  }
};

/// Updates elements first … first + count of the values and says which of them pass: found[i] counts from
/// `first`, and there is room for `count`.
using Pass = std::function<std::size_t(std::size_t first, std::size_t count, Cut cut, std::uint32_t* found)>;
/// Updates nothing.
Pass finding(std::span<const float> values);
/// values += in.
Pass adding(std::span<const float> in, std::span<float> values);

/// Elements that a pass handles at a time: what was found among them is taken while they are in the cache.
inline constexpr std::size_t run_length = 4096;

struct Limit {
  std::size_t want = 0;
  std::size_t most = std::numeric_limits<std::size_t>::max();
};

/// Takes what passes: 0 is left in its place. When there are more than limit.most, it raises the threshold to
/// what leaves limit.want for the whole, going by what it has seen, and puts the rest back. Returns the
/// threshold at the end.
Key pick(const Pass& pass, std::span<float> values, Cut cut, Limit limit, Entries& entries);
/// Takes exactly the `want` largest (fewer if fewer are not 0), of equal ones the lowest indices. Reads the
/// values again if fewer than `want` reach the guess. Returns the key of the smallest taken, not above
/// infinity.
Key pick_exactly(const Pass& pass, std::span<float> values, Cut guess, std::size_t want, Entries& entries);
/// Puts back into `values` all but the `want` largest, of which there is one at least. Returns as
/// pick_exactly().
Key keep_largest(Entries& entries, std::size_t want, std::span<float> values);
void put_back(Entries& entries, std::span<float> values);

/// The key at `rank` (1: the largest) by three rounds of counting, of 11, 11 and 9 bits. rank <= keys.size().
Key kth_largest(std::span<const Key> keys, std::size_t rank);

/// A threshold that about `want` of `count` reach, going by a sample: safe, rather too low than too high, or
/// even.
template <class ValueAt>
Key guess_threshold(std::size_t count, std::size_t want, Sampling sampling, bool safe, const ValueAt& at);
Key guess_from(std::span<const Key> keys, std::size_t count, std::size_t want, bool safe);

/// For State: what belongs to the piece that starts at `offset`.
std::string name_at(std::string_view name, std::uint64_t offset);

template <class ValueAt>
Key guess_threshold(std::size_t count, std::size_t want, Sampling sampling, bool safe, const ValueAt& at) {
  std::vector<Key> keys;
  keys.reserve(sampling.size(count));
  for (std::size_t i = sampling.first; i < count; i += sampling.stride) keys.push_back(key_of(at(i)));
  return guess_from(keys, count, want, safe);
}

}  // namespace tutti::compress
