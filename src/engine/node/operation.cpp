#include "engine/node/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "kernel/kernel.hpp"

namespace tutti::engine::node {

using schedule::Collective;
using transport::Notice;

namespace {

/// So much of a slice is added at once, small enough to be still in the first cache when it is copied on.
constexpr std::size_t block_bytes = 16384;

}  // namespace

NodeOperation::NodeOperation(Group& group, const Limits& limits, const Request& request,
                             std::uint32_t sequence, const transport::Signature& signature)
    : group_(group),
      limits_(limits),
      counts_(request.counts.begin(), request.counts.end()),
      request_(request),
      sequence_(sequence),
      signature_(signature),
      check_(one_word(signature)),
      number_(group.next++),
      chunks_(request_, group.rank(), group.ranks(), group.cell_bytes(),
              group.ranks() > limits.flat_ranks &&
                  request.count * request.element_bytes() > std::max(limits.flat_bytes, limits.slot_bytes),
              limits.streams(request.count * request.element_bytes(), group.ranks())) {
  request_.counts = counts_;
  if (!small() && request_.prescale == 1.0) find_words();
}

NodeOperation::~NodeOperation() {
  if (phase_ != Phase::done && !given_up_)
    say_failed(Notice::Kind::peer_lost, fmt::format("{}: was given up", label()));
}

Turn NodeOperation::advance() {
  bool moved = false;
  blocked_on_ = nullptr;
  if (phase_ == Phase::queued) {
    if (group_.current != number_ || !begin()) return Turn::idle;
    moved = true;
  }
  if (phase_ == Phase::arriving) {
    if (!all_arrived()) return moved ? Turn::moved : Turn::idle;
    moved = true;
    if (small()) {
      run_in_slots();
      finish();
    } else if (all_in_arena()) {
      run_in_place();
      publish(&Control::done, mark());
      phase_ = Phase::leaving;
    } else {
      // Whoever is here needs no chunk of the operations before.
      for (std::uint64_t& known : group_.consumed) known = std::max(known, base_);
      note_staged();
      phase_ = Phase::through_cells;
    }
  }
  if (phase_ == Phase::through_cells) {
    if (advance_cells()) moved = true;
  } else if (phase_ == Phase::leaving && reached(&Control::done, group_.done, mark())) {
    finish();
  }
  if (phase_ == Phase::done) return Turn::done;
  return moved ? Turn::moved : Turn::idle;
}

/// False if what it has to write over is still being read.
bool NodeOperation::begin() {
  base_ = group_.chunks;
  if (!entered_) enter();
  if (small()) {
    Slot& slot = group_.own().slots[number_ % 2];
    if (chunks_.count() > 0) chunks_.stage(0, slot.payload.data());
  } else {
    // With private memory it will go through the cells in any case: the first chunk comes with the arrival.
    const bool listens = request_.collective == Collective::broadcast && group_.rank() != request_.root;
    if (input_word_ == 0 && !listens && !stage_next()) return false;
    const std::array<Word, 2> words{input_word_, output_word_};
    std::memcpy(group_.own().slots[number_ % 2].payload.data(), words.data(), sizeof words);
  }
  arrive();
  return true;
}

void NodeOperation::enter() {
  entered_ = true;
  group_.own().plight.entered.store(mark(), std::memory_order_release);
}

void NodeOperation::arrive() {
  Slot& slot = group_.own().slots[number_ % 2];
  slot.signature = check_;
  slot.operation.store(mark(), std::memory_order_release);
  group_.wake();
  phase_ = Phase::arriving;
}

bool NodeOperation::all_arrived() {
  for (; arrived_ < group_.ranks(); ++arrived_) {
    const Slot& slot = group_.of(arrived_).slots[number_ % 2];
    if (!reached(arrived_, slot.operation, mark())) return false;
    if (slot.signature != check_) mismatch(arrived_);
  }
  return true;
}

bool NodeOperation::reached(Rank rank, const std::atomic<std::uint64_t>& value, std::uint64_t wanted) {
  return value.load(std::memory_order_acquire) >= wanted || blocked(rank, value, wanted);
}

/// Keeps the first thing that was missing in a turn: what comes later may wait for the same.
bool NodeOperation::blocked(Rank rank, const std::atomic<std::uint64_t>& value, std::uint64_t wanted) {
  if (blocked_on_ != nullptr) return false;
  waits_for_ = rank;
  blocked_on_ = &value;
  blocked_until_ = wanted;
  return false;
}

bool NodeOperation::reached(Beat Control::*beat, std::vector<std::uint64_t>& seen, std::uint64_t value) {
  for (Rank r = 0; r < group_.ranks(); ++r) {
    std::uint64_t& known = seen[static_cast<std::size_t>(r)];
    if (known >= value || r == group_.rank()) continue;
    const std::atomic<std::uint64_t>& counter = (group_.of(r).*beat).value;
    const std::uint64_t now = counter.load(std::memory_order_acquire);
    if (now < value) return blocked(r, counter, value);
    known = now;
  }
  return true;
}

void NodeOperation::publish(Beat Control::*beat, std::uint64_t value) {
  (group_.own().*beat).value.store(value, std::memory_order_release);
  group_.wake();
}

// ---- everything beside the flags

void NodeOperation::run_in_slots() {
  if (chunks_.count() == 0) return;
  const auto slots = group_.slots(number_);
  if (chunks_.reduces() && !chunks_.reduce_padded(slots, group_.scratch()))
    chunks_.reduce(0, slots, group_.scratch());
  if (chunks_.gathers()) chunks_.gather(0, slots);
}

// ---- through the cells

bool NodeOperation::stage_next() {
  // A scaled contribution is read from this rank's own cell: that one too must have been used.
  if (staged_ >= (chunks_.gathers() ? gathered_ : reduced_) + Group::cells_per_rank) return false;
  const std::uint64_t chunk = base_ + staged_;
  if (chunk >= Group::cells_per_rank &&
      !reached(&Control::consumed, group_.consumed, chunk + 1 - Group::cells_per_rank))
    return false;
  if (staged_ < chunks_.count())
    chunks_.stage(staged_, group_.cells(chunk)[static_cast<std::size_t>(group_.rank())]);
  publish(&Control::staged, base_ + ++staged_);
  return true;
}

/// Whether something moved. Later steps come first, so that what others wait for is not held back.
bool NodeOperation::advance_cells() {
  bool moved = false;
  for (;;) {
    blocked_on_ = nullptr;
    const std::uint64_t count = chunks_.count();
    const bool last_is_gather = chunks_.gathers();
    std::uint64_t& consumed = last_is_gather ? gathered_ : reduced_;
    if (last_is_gather && gathered_ < (chunks_.reduces() ? reduced_ : staged_) &&
        (chunks_.reduces() ? reached(&Control::reduced, group_.reduced, base_ + gathered_ + 1)
                           : reached(&Control::staged, group_.staged, base_ + gathered_ + 1))) {
      chunks_.gather(gathered_, group_.cells(base_ + gathered_));
      ++gathered_;
      if (count > 2) publish(&Control::consumed, base_ + gathered_);
    } else if (chunks_.reduces() && reduced_ < staged_ &&
               reached(&Control::staged, group_.staged, base_ + reduced_ + 1)) {
      chunks_.reduce(reduced_, group_.cells(base_ + reduced_), group_.scratch());
      ++reduced_;
      if (last_is_gather) {
        publish(&Control::reduced, base_ + reduced_);
      } else if (count > 2) {
        publish(&Control::consumed, base_ + reduced_);
      }
    } else if (staged_ >= count || !stage_next()) {
      return moved;
    }
    moved = true;
    if (consumed == count) {
      group_.chunks += count;
      finish();
      return true;
    }
  }
}

// ---- in place, in the arena

/// Where this rank's buffers lie, if all that peers would touch lies in the arena.
void NodeOperation::find_words() {
  const std::size_t size = request_.element_bytes();
  const auto rank = static_cast<std::size_t>(group_.rank());
  std::size_t input_count = request_.count;
  bool writes_output = request_.collective == Collective::allreduce;
  if (request_.collective == Collective::reduce_scatter)
    input_count *= static_cast<std::size_t>(group_.ranks());
  if (request_.collective == Collective::allgather && !counts_.empty()) input_count = counts_[rank];
  if (request_.collective == Collective::broadcast && group_.rank() != request_.root) return;
  if (request_.collective == Collective::reduce) writes_output = group_.rank() == request_.root;
  const Word input = group_.arena().word_of(request_.input, input_count * size);
  if (input == 0) return;
  if (writes_output) {
    output_word_ = request_.output == request_.input
                       ? input
                       : group_.arena().word_of(request_.output, request_.count * size);
    if (output_word_ == 0) return;
  }
  input_word_ = input;
}

/// Ranks with private memory have brought their first chunk with them.
void NodeOperation::note_staged() {
  if (request_.collective == Collective::broadcast) return;
  for (Rank r = 0; r < group_.ranks(); ++r) {
    std::uint64_t& known = group_.staged[static_cast<std::size_t>(r)];
    if (word_of(r, 0) == 0) known = std::max(known, base_ + 1);
  }
}

Word NodeOperation::word_of(Rank rank, std::size_t which) const {
  Word word = 0;
  std::memcpy(&word, group_.slots(number_)[static_cast<std::size_t>(rank)] + which * sizeof word,
              sizeof word);
  return word;
}

std::byte* NodeOperation::input_of(Rank rank) {
  return group_.arena().at(word_of(rank, 0), rank);
}

std::byte* NodeOperation::output_of(Rank rank) {
  return group_.arena().at(word_of(rank, 1), rank);
}

bool NodeOperation::all_in_arena() const {
  if (request_.collective == Collective::broadcast) return word_of(request_.root, 0) != 0;
  for (Rank r = 0; r < group_.ranks(); ++r) {
    if (word_of(r, 0) == 0) return false;
  }
  return true;
}

/// This rank's slice, from all inputs to all outputs that are to have it.
void NodeOperation::add_slice() {
  const std::size_t size = request_.element_bytes();
  const auto ranks = static_cast<std::size_t>(group_.ranks());
  const std::size_t slice = (request_.count + ranks * 64 - 1) / (ranks * 64) * 64;
  const std::size_t first = std::min(request_.count, slice * static_cast<std::size_t>(group_.rank()));
  const std::size_t last = std::min(request_.count, first + slice);
  std::vector<std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (Rank r = 0; r < group_.ranks(); ++r) {
    inputs.push_back(input_of(r));
    if (request_.collective == Collective::allreduce || r == request_.root) outputs.push_back(output_of(r));
  }
  if (request_.collective == Collective::allreduce)
    std::swap(outputs[0], outputs[static_cast<std::size_t>(group_.rank())]);
  const std::uint64_t divisor = request_.op == Op::average ? ranks : 0;
  const bool streams = limits_.streams(request_.count * size, group_.ranks());
  alignas(64) std::array<std::byte, block_bytes> sum;
  for (std::size_t at = first; at < last; at += block_bytes / size) {
    const std::size_t n = std::min(last - at, block_bytes / size);
    for (std::size_t r = 0; r < ranks; ++r) group_.scratch()[r] = inputs[r] + at * size;
    std::byte* const to = streams ? sum.data() : outputs[0] + at * size;
    kernel::reduce_many(request_.op, request_.type, {to, request_.type}, group_.scratch(), request_.type, n,
                        divisor);
    for (std::byte* output : outputs) {
      std::byte* const there = output + at * size;
      if (streams) kernel::stream(there, to, n * size);
      if (!streams && there != to) kernel::copy(there, to, n * size);
    }
  }
  if (streams) kernel::flush_stream();
}

void NodeOperation::run_in_place() {
  const std::size_t size = request_.element_bytes();
  auto* const output = static_cast<std::byte*>(request_.output);
  switch (request_.collective) {
    case Collective::allreduce:
    case Collective::reduce: add_slice(); return;
    case Collective::broadcast:
      if (group_.rank() != request_.root)
        kernel::copy(output, input_of(request_.root), request_.count * size);
      return;
    case Collective::reduce_scatter: {
      const std::size_t offset = request_.count * size * static_cast<std::size_t>(group_.rank());
      for (Rank r = 0; r < group_.ranks(); ++r)
        group_.scratch()[static_cast<std::size_t>(r)] = input_of(r) + offset;
      kernel::reduce_many(request_.op, request_.type, {output, request_.type}, group_.scratch(),
                          request_.type, request_.count,
                          request_.op == Op::average ? static_cast<std::uint64_t>(group_.ranks()) : 0);
      return;
    }
    case Collective::allgather: {
      std::size_t start = 0;
      for (Rank r = 0; r < group_.ranks(); ++r) {
        const std::size_t n = counts_.empty() ? request_.count : counts_[static_cast<std::size_t>(r)];
        const std::byte* const from = input_of(r);
        if (from != output + start * size) kernel::copy(output + start * size, from, n * size);
        start += n;
      }
      return;
    }
  }
}

void NodeOperation::finish() {
  group_.own().plight.left.store(mark(), std::memory_order_release);
  ++group_.current;
  phase_ = Phase::done;
}

// ---- when it does not go on

std::string NodeOperation::label() const {
  return fmt::format("operation #{}, {}, on {}", sequence_, engine::describe(signature_),
                     group_.name(group_.rank()));
}

std::string NodeOperation::describe() const {
  if (waits_for_its_turn()) return fmt::format("{}: waits for the operation before it", label());
  return fmt::format("{}: waits for {} in shared memory; of all ranks:{}", label(), group_.name(waits_for_),
                     group_.table());
}

void NodeOperation::say_failed(Notice::Kind kind, const std::string& text) noexcept {
  given_up_ = true;
  group_.say_failed(kind, text);
}

void NodeOperation::fail(Notice::Kind kind, const std::string& text) {
  say_failed(kind, text);
  throw_as(kind, text);
}

void NodeOperation::mismatch(Rank rank) {
  const auto theirs = group_.call_of(rank, sequence_);
  fail(Notice::Kind::mismatch,
       fmt::format("{}: {} called {}; {}", label(), group_.name(rank),
                   theirs ? difference(signature_, *theirs) : "something else instead", same_everywhere));
}

/// Whether the others are still there, and in the same operation.
void NodeOperation::look_around(Seconds /*idle*/) {
  if (const auto trouble = group_.trouble(sequence_, signature_)) {
    fail(trouble->kind, fmt::format("{}; meanwhile {}", trouble->text, label()));
  }
  if (waits_for_its_turn()) return;
  if (const auto rank = group_.missing(mark()))
    fail(Notice::Kind::peer_lost, fmt::format("{}: {}", label(), *rank));
}

void NodeOperation::abandon(const std::string& reason) noexcept {
  say_failed(Notice::Kind::timeout, reason);
}

void NodeOperation::sleep(Seconds most) {
  if (blocked_on_ == nullptr || waits_for_its_turn()) return Operation::sleep(most);
  group_.sleep_for(waits_for_, most,
                   [this] { return blocked_on_->load(std::memory_order_acquire) >= blocked_until_; });
}

}  // namespace tutti::engine::node
