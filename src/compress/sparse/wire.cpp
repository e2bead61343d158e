#include "compress/sparse/wire.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "compress/arithmetic/select.hpp"

namespace tutti::compress {
namespace {

constexpr std::uint32_t escape = 65535;
constexpr std::size_t header = sizeof(std::uint32_t);

enum class Indices : std::uint8_t { gaps, numbers, bitmap };

struct Layout {
  Indices indices;
  std::size_t bytes;  ///< of gaps: at most
};

Layout layout_of(std::size_t count, std::size_t entries) {
  Layout best{Indices::gaps, 2 * (entries + count / escape)};
  for (const Layout& other :
       {Layout{Indices::numbers, 4 * entries}, Layout{Indices::bitmap, (count + 7) / 8}}) {
    if (other.bytes < best.bytes) best = other;
  }
  return best;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
std::byte* store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

std::byte* put_gaps(std::span<const std::uint32_t> index, std::byte* to) {
  std::uint32_t next = 0;
  for (const std::uint32_t i : index) {
    std::uint32_t gap = i - next;
    for (; gap >= escape; gap -= escape) to = store(to, static_cast<std::uint16_t>(escape));
    to = store(to, static_cast<std::uint16_t>(gap));
    next = i + 1;
  }
  return to;
}

std::byte* put_bitmap(std::span<const std::uint32_t> index, std::size_t count, std::byte* to) {
  std::fill_n(to, (count + 7) / 8, std::byte{0});
  for (const std::uint32_t i : index) to[i / 8] |= std::byte{1} << (i % 8U);
  return to + (count + 7) / 8;
}

/// The readers return false if that is no list of index.size() increasing indices below `count`.
bool get_gaps(std::span<const std::byte> in, std::size_t count, std::span<std::uint32_t> index) {
  if (in.size() % 2 != 0) return false;
  std::size_t entry = 0;
  std::size_t next = 0;
  for (std::size_t at = 0; at < in.size(); at += 2) {
    const auto gap = load<std::uint16_t>(in.data() + at);
    next += gap;
    if (gap == escape) continue;
    if (next >= count || entry == index.size()) return false;
    index[entry++] = static_cast<std::uint32_t>(next++);
  }
  // An escape at the end leads to no entry: there would be two encodings of the same.
  const bool ends = in.empty() || load<std::uint16_t>(in.data() + in.size() - 2) != escape;
  return entry == index.size() && ends;
}

bool get_numbers(std::span<const std::byte> in, std::size_t count, std::span<std::uint32_t> index) {
  if (in.size() != 4 * index.size()) return false;
  std::size_t next = 0;
  for (std::size_t entry = 0; entry < index.size(); ++entry) {
    index[entry] = load<std::uint32_t>(in.data() + 4 * entry);
    if (index[entry] < next || index[entry] >= count) return false;
    next = std::size_t{index[entry]} + 1;
  }
  return true;
}

bool get_bitmap(std::span<const std::byte> in, std::size_t count, std::span<std::uint32_t> index) {
  if (in.size() != (count + 7) / 8) return false;
  std::size_t entry = 0;
  for (std::size_t at = 0; at < in.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, in.data() + at, std::min<std::size_t>(8, in.size() - at));
    for (; word != 0; word &= word - 1) {
      const std::size_t i = 8 * at + static_cast<std::size_t>(std::countr_zero(word));
      if (i >= count || entry == index.size()) return false;
      index[entry++] = static_cast<std::uint32_t>(i);
    }
  }
  return entry == index.size();
}

}  // namespace

std::size_t Format::values_bytes(std::size_t entries) const {
  if (entries == 0) return 0;
  return values_ == Values::fp32 ? 4 * entries : values_ == Values::bf16 ? 2 * entries : sizeof(float);
}

std::size_t Format::bound(std::size_t count, std::size_t entries) const {
  base::require(count <= 0xFFFFFFFFU,
                "a sparse codec numbers elements in 32 bits; a piece of {} elements has to be cut", count);
  return header + values_bytes(entries) + layout_of(count, entries).bytes;
}

std::size_t Format::write(std::size_t count, std::span<const std::uint32_t> index,
                          std::span<const float> values, std::span<std::byte> out) const {
  std::byte* to = store(out.data(), static_cast<std::uint32_t>(index.size()));
  if (values_ == Values::bf16) {
    for (const float value : values) to = store(to, to_bfloat16(value));
  } else if (!index.empty()) {
    std::memcpy(to, values.data(), values_bytes(index.size()));
    to += values_bytes(index.size());
  }
  switch (layout_of(count, index.size()).indices) {
    case Indices::gaps: to = put_gaps(index, to); break;
    case Indices::numbers:
      for (const std::uint32_t i : index) to = store(to, i);
      break;
    case Indices::bitmap: to = put_bitmap(index, count, to); break;
  }
  return static_cast<std::size_t>(to - out.data());
}

std::vector<std::uint32_t> Format::read_indices(std::span<const std::byte> in, std::size_t count) const {
  if (in.size() < header)
    base::fail<MismatchError>("a sparse encoding has {} bytes, expected {} or more", in.size(), header);
  const std::size_t entries = load<std::uint32_t>(in.data());
  // Before anything of that many is made.
  if (entries > count || header + values_bytes(entries) > in.size())
    base::fail<MismatchError>("a sparse encoding of {} elements has {} bytes and claims {} entries", count,
                              in.size(), entries);
  std::vector<std::uint32_t> index(entries);
  const auto rest = in.subspan(header + values_bytes(entries));
  bool right = false;
  switch (layout_of(count, entries).indices) {
    case Indices::gaps: right = get_gaps(rest, count, index); break;
    case Indices::numbers: right = get_numbers(rest, count, index); break;
    case Indices::bitmap: right = get_bitmap(rest, count, index); break;
  }
  if (!right)
    base::fail<MismatchError>(
        "a sparse encoding of {} elements has {} bytes for its indices that are not {} "
        "increasing indices; did all ranks choose the same codec and options?",
        count, rest.size(), entries);
  return index;
}

template <class Take>
void Format::scatter(std::span<const std::byte> in, std::span<const std::uint32_t> index,
                     const Take& take) const {
  const std::byte* values = in.data() + header;
  switch (values_) {
    case Values::fp32:
      for (std::size_t i = 0; i < index.size(); ++i) take(index[i], load<float>(values + 4 * i));
      break;
    case Values::bf16:
      for (std::size_t i = 0; i < index.size(); ++i)
        take(index[i], from_bfloat16(load<std::uint16_t>(values + 2 * i)));
      break;
    case Values::one:
      for (const std::uint32_t i : index) take(i, load<float>(values));
      break;
  }
}

void Format::decode(std::span<const std::byte> in, std::span<float> out) const {
  const auto index = read_indices(in, out.size());
  std::ranges::fill(out, 0.0F);
  scatter(in, index, [&](std::uint32_t i, float value) { out[i] = value; });
}

void Format::decode_add(std::span<const std::byte> in, std::span<float> sum) const {
  const auto index = read_indices(in, sum.size());
  scatter(in, index, [&](std::uint32_t i, float value) { sum[i] += value; });
}

}  // namespace tutti::compress
