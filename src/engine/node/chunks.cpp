#include "engine/node/chunks.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "kernel/kernel.hpp"

namespace tutti::engine::node {

using schedule::Collective;

namespace {

constexpr std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

constexpr std::size_t line_elements = 64;

/// Stays in the first cache between being added and being written.
constexpr std::size_t stream_block = 8192;

}  // namespace

Chunks::Chunks(const Request& request, Rank rank, Rank ranks, std::size_t cell_bytes, bool sliced,
               bool streams)
    : request_(request),
      rank_(rank),
      ranks_(ranks),
      wire_(request.prescale == 1.0 ? request.type : kernel::accumulator(request.type, request.op)),
      scaled_(request.prescale != 1.0),
      streams_(streams) {
  const Collective c = request.collective;
  reduces_ = c == Collective::allreduce || c == Collective::reduce || c == Collective::reduce_scatter;
  // A slice's result goes where this rank's own contribution lies, so both must be of one size.
  sliced_ = sliced && !scaled_ && (c == Collective::allreduce || c == Collective::reduce);
  gathers_ = sliced_ || !reduces_;
  const std::size_t blocks = c == Collective::reduce_scatter ? static_cast<std::size_t>(ranks) : 1;
  std::size_t longest = request.count;
  if (!request.counts.empty()) longest = *std::max_element(request.counts.begin(), request.counts.end());
  const std::size_t bytes = size_of(wire_) * blocks;
  total_bytes_ = longest * bytes;
  if (total_bytes_ <= cell_bytes) {
    chunk_ = longest;
    chunks_ = longest == 0 ? 0 : 1;
    return;
  }
  const std::size_t most = std::max<std::size_t>(1, cell_bytes / bytes);
  chunks_ = ceil_div(longest, most);
  // Chunks of equal size, on borders of lines where they are long.
  chunk_ = std::min(most, ceil_div(ceil_div(longest, chunks_), line_elements) * line_elements);
  chunks_ = ceil_div(longest, chunk_);
}

Chunks::Part Chunks::part(std::uint64_t chunk, std::size_t elements) const {
  const std::size_t first = std::min<std::size_t>(elements, chunk * chunk_);
  return {first, std::min(elements - first, chunk_)};
}

Chunks::Part Chunks::slice(std::size_t elements, Rank rank) const {
  std::size_t size = ceil_div(elements, static_cast<std::size_t>(ranks_));
  size = ceil_div(size, line_elements) * line_elements;
  const std::size_t first = std::min(elements, size * static_cast<std::size_t>(rank));
  return {first, std::min(elements - first, size)};
}

std::size_t Chunks::block_start(Rank rank) const {
  if (request_.counts.empty()) return request_.count * static_cast<std::size_t>(rank);
  return std::accumulate(request_.counts.begin(), request_.counts.begin() + rank, std::size_t{0});
}

std::size_t Chunks::block_count(Rank rank) const {
  return request_.counts.empty() ? request_.count : request_.counts[static_cast<std::size_t>(rank)];
}

/// Elements of the input into the cell, scaled if they are to be.
void Chunks::put(std::byte* cell, std::size_t first, std::size_t count) const {
  const auto* from = static_cast<const std::byte*>(request_.input) + first * request_.element_bytes();
  if (count == 0) return;
  if (scaled_) {
    kernel::scale(request_.type, request_.op, {cell, wire_}, {from, request_.type}, count, request_.prescale);
  } else {
    kernel::copy(cell, from, count * request_.element_bytes());
  }
}

void Chunks::stage(std::uint64_t chunk, std::byte* own_cell) const {
  switch (request_.collective) {
    case Collective::broadcast:
      if (rank_ != request_.root) return;
      [[fallthrough]];
    case Collective::allreduce:
    case Collective::reduce: {
      const Part p = part(chunk, request_.count);
      put(own_cell, p.first, p.count);
      return;
    }
    case Collective::allgather: {
      const Part p = part(chunk, block_count(rank_));
      put(own_cell, p.first, p.count);
      return;
    }
    case Collective::reduce_scatter:
      for (Rank r = 0; r < ranks_; ++r) {
        const Part p = part(chunk, request_.count);
        if (r == rank_ && !scaled_) continue;
        put(own_cell + p.count * size_of(wire_) * static_cast<std::size_t>(r), block_start(r) + p.first,
            p.count);
      }
      return;
  }
}

/// Adds a run from all cells, but this rank's own contribution from where it comes, if it was not scaled.
void Chunks::reduce_run(std::byte* to, std::span<std::byte* const> cells, std::size_t cell_offset,
                        const void* own, std::size_t count, std::span<const void*> scratch) const {
  if (count == 0) return;
  for (std::size_t r = 0; r < cells.size(); ++r) scratch[r] = cells[r] + cell_offset * size_of(wire_);
  if (!scaled_) scratch[static_cast<std::size_t>(rank_)] = own;
  const std::uint64_t divisor = request_.op == Op::average ? static_cast<std::uint64_t>(ranks_) : 0;
  const auto add = [&](void* target, std::size_t n) {
    kernel::reduce_many(request_.op, request_.type, {target, request_.type}, scratch, wire_, n, divisor);
  };
  if (!streams_ || sliced_) return add(to, count);
  alignas(64) std::array<std::byte, stream_block> sum;
  for (std::size_t at = 0; at < count;) {
    const std::size_t n = std::min(count - at, sum.size() / request_.element_bytes());
    add(sum.data(), n);
    kernel::stream(to + at * request_.element_bytes(), sum.data(), n * request_.element_bytes());
    for (const void*& source : scratch) source = static_cast<const std::byte*>(source) + n * size_of(wire_);
    at += n;
  }
  kernel::flush_stream();
}

bool Chunks::reduce_padded(std::span<std::byte* const> cells, std::span<const void*> scratch) const {
  constexpr std::size_t most = 512;
  constexpr std::size_t vector = 64;
  const std::size_t bytes = request_.count * size_of(wire_);
  if (bytes > most || request_.collective == Collective::reduce_scatter || scaled_) return false;
  if (request_.collective == Collective::reduce && rank_ != request_.root) return true;
  alignas(vector) std::array<std::byte, most> sum;
  for (std::size_t r = 0; r < cells.size(); ++r) scratch[r] = cells[r];
  const std::uint64_t divisor = request_.op == Op::average ? static_cast<std::uint64_t>(ranks_) : 0;
  const std::size_t padded = (bytes + vector - 1) / vector * vector / size_of(wire_);
  kernel::reduce_many(request_.op, request_.type, {sum.data(), request_.type}, scratch, wire_, padded,
                      divisor);
  kernel::copy(request_.output, sum.data(), bytes);
  return true;
}

void Chunks::reduce(std::uint64_t chunk, std::span<std::byte* const> cells,
                    std::span<const void*> scratch) const {
  if (!reduces_) return;
  const auto* input = static_cast<const std::byte*>(request_.input);
  auto* output = static_cast<std::byte*>(request_.output);
  const std::size_t size = request_.element_bytes();
  const Part p = part(chunk, request_.count);
  if (request_.collective == Collective::reduce_scatter) {
    const std::size_t offset = p.count * static_cast<std::size_t>(rank_);
    reduce_run(output + p.first * size, cells, offset, input + (block_start(rank_) + p.first) * size, p.count,
               scratch);
    return;
  }
  const bool wanted = request_.collective == Collective::allreduce || rank_ == request_.root;
  if (!sliced_) {
    if (wanted) reduce_run(output + p.first * size, cells, 0, input + p.first * size, p.count, scratch);
    return;
  }
  const Part s = slice(p.count, rank_);
  std::byte* const own_cell = cells[static_cast<std::size_t>(rank_)];
  reduce_run(own_cell + s.first * size_of(wire_), cells, s.first, input + (p.first + s.first) * size, s.count,
             scratch);
  if (wanted)
    install(output + (p.first + s.first) * size, own_cell + s.first * size_of(wire_), s.count * size);
}

/// Into the output, past the caches where it would not stay in them anyway.
void Chunks::install(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (!streams_) return kernel::copy(to, from, bytes);
  kernel::stream(to, from, bytes);
  kernel::flush_stream();
}

void Chunks::gather(std::uint64_t chunk, std::span<std::byte* const> cells) const {
  auto* output = static_cast<std::byte*>(request_.output);
  const std::size_t size = request_.element_bytes();
  switch (request_.collective) {
    case Collective::allreduce:
    case Collective::reduce: {
      if (request_.collective == Collective::reduce && rank_ != request_.root) return;
      const Part p = part(chunk, request_.count);
      for (Rank i = 1; i < ranks_; ++i) {
        const Rank r = (rank_ + i) % ranks_;
        const Part s = slice(p.count, r);
        install(output + (p.first + s.first) * size,
                cells[static_cast<std::size_t>(r)] + s.first * size_of(wire_), s.count * size);
      }
      return;
    }
    case Collective::broadcast: {
      if (rank_ == request_.root) return;
      const Part p = part(chunk, request_.count);
      install(output + p.first * size, cells[static_cast<std::size_t>(request_.root)], p.count * size);
      return;
    }
    case Collective::allgather:
      for (Rank i = 0; i < ranks_; ++i) {
        const Rank r = (rank_ + i) % ranks_;
        const Part p = part(chunk, block_count(r));
        std::byte* const to = output + (block_start(r) + p.first) * size;
        if (r != rank_) {
          install(to, cells[static_cast<std::size_t>(r)], p.count * size);
        } else if (const auto* from = static_cast<const std::byte*>(request_.input) + p.first * size;
                   from != to) {
          install(to, from, p.count * size);
        }
      }
      return;
    case Collective::reduce_scatter: return;
  }
}

}  // namespace tutti::engine::node
