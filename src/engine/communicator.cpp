#include "tutti/communicator.hpp"

#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "engine/communicator_state.hpp"

namespace tutti {

using engine::Request;
using schedule::Collective;

// ---- Work
// -----------------------------------------------------------------------------------------------------------

Work::Work() noexcept : exceptions_(std::uncaught_exceptions()) {}

Work::Work(std::shared_ptr<engine::Pending> pending) noexcept
    : pending_(std::move(pending)), exceptions_(std::uncaught_exceptions()) {}

Work::Work(Work&& other) noexcept
    : pending_(std::move(other.pending_)), exceptions_(std::uncaught_exceptions()) {}

Work& Work::operator=(Work&& other) noexcept {
  Work old(std::move(*this));  // waits in its destructor, as this one's buffers may go now
  pending_ = std::move(other.pending_);
  return *this;
}

Work::~Work() {
  try {
    if (pending_ && std::uncaught_exceptions() > exceptions_)
      engine::Progress::end(*pending_, engine::patience_while_unwinding);
    wait();
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented; wait() is there for who wants to know
  }
}

void Work::wait() {
  if (const auto pending = std::exchange(pending_, nullptr)) engine::Progress::wait(*pending);
}

bool Work::done() {
  return !pending_ || engine::Progress::test(*pending_);
}

// ---- Communicator
// ---------------------------------------------------------------------------------------------------

Communicator::Communicator(std::shared_ptr<engine::CommunicatorState> state) noexcept
    : state_(std::move(state)) {}

Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Rank Communicator::rank() const noexcept {
  return state_->rank();
}

Rank Communicator::size() const noexcept {
  return state_->size();
}

Communicator Communicator::split(int color, int key) {
  return Communicator(state_->split(color, key));
}

std::shared_ptr<std::byte> Communicator::allocate_bytes(std::size_t count, std::size_t size) {
  base::require(count <= std::numeric_limits<std::size_t>::max() / size,
                "allocate: {} elements of {} bytes do not fit in memory", count, size);
  return state_->allocate(count * size);
}

namespace {

Request allreduce_request(const void* in, void* out, std::size_t count, DType type, Op op) {
  return {.collective = Collective::allreduce,
          .input = in,
          .output = out,
          .count = count,
          .type = type,
          .op = op};
}

Request reduce_scatter_request(const void* in, void* out, std::size_t count, DType type, Op op) {
  return {.collective = Collective::reduce_scatter,
          .input = in,
          .output = out,
          .count = count,
          .type = type,
          .op = op};
}

Request allgather_request(const void* in, void* out, std::size_t count, DType type) {
  return {.collective = Collective::allgather, .input = in, .output = out, .count = count, .type = type};
}

Request broadcast_request(void* data, std::size_t count, DType type, Rank root) {
  return {.collective = Collective::broadcast,
          .input = data,
          .output = data,
          .count = count,
          .type = type,
          .root = root};
}

Request reduce_request(const void* in, void* out, std::size_t count, DType type, Op op, Rank root) {
  return {.collective = Collective::reduce,
          .input = in,
          .output = out,
          .count = count,
          .type = type,
          .op = op,
          .root = root};
}

}  // namespace

void Communicator::allreduce(const void* in, void* out, std::size_t count, DType type, Op op,
                             const CallOptions& options) {
  state_->run(state_->prepare(allreduce_request(in, out, count, type, op), options));
}

Work Communicator::allreduce_async(const void* in, void* out, std::size_t count, DType type, Op op,
                                   const CallOptions& options) {
  return Work(state_->start(state_->prepare(allreduce_request(in, out, count, type, op), options)));
}

void Communicator::reduce_scatter(const void* in, void* out, std::size_t count, DType type, Op op,
                                  const CallOptions& options) {
  state_->run(state_->prepare(reduce_scatter_request(in, out, count, type, op), options));
}

Work Communicator::reduce_scatter_async(const void* in, void* out, std::size_t count, DType type, Op op,
                                        const CallOptions& options) {
  return Work(state_->start(state_->prepare(reduce_scatter_request(in, out, count, type, op), options)));
}

void Communicator::allgather(const void* in, void* out, std::size_t count, DType type,
                             const CallOptions& options) {
  state_->run(state_->prepare(allgather_request(in, out, count, type), options));
}

Work Communicator::allgather_async(const void* in, void* out, std::size_t count, DType type,
                                   const CallOptions& options) {
  return Work(state_->start(state_->prepare(allgather_request(in, out, count, type), options)));
}

namespace {

Request allgatherv_request(const Communicator& communicator, const void* in, std::size_t in_count, void* out,
                           std::size_t out_count, std::span<const std::size_t> counts, DType type) {
  const Rank rank = communicator.rank();
  const Rank size = communicator.size();
  base::require(std::cmp_equal(counts.size(), size), "allgatherv: {} counts for {} ranks", counts.size(),
                size);
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  base::require(total == out_count, "allgatherv: the counts add up to {} elements, but the output has {}",
                total, out_count);
  const std::size_t own = counts[static_cast<std::size_t>(rank)];
  base::require(own == in_count, "allgatherv: counts[{}] is {}, but the input of rank {} has {} elements",
                rank, own, rank, in_count);
  Request request = allgather_request(in, out, total, type);
  request.counts = counts;
  return request;
}

}  // namespace

void Communicator::allgatherv(const void* in, std::size_t in_count, void* out, std::size_t out_count,
                              std::span<const std::size_t> counts, DType type, const CallOptions& options) {
  state_->run(
      state_->prepare(allgatherv_request(*this, in, in_count, out, out_count, counts, type), options));
}

Work Communicator::allgatherv_async(const void* in, std::size_t in_count, void* out, std::size_t out_count,
                                    std::span<const std::size_t> counts, DType type,
                                    const CallOptions& options) {
  return Work(state_->start(
      state_->prepare(allgatherv_request(*this, in, in_count, out, out_count, counts, type), options)));
}

void Communicator::broadcast(void* data, std::size_t count, DType type, Rank root,
                             const CallOptions& options) {
  state_->run(state_->prepare(broadcast_request(data, count, type, root), options));
}

Work Communicator::broadcast_async(void* data, std::size_t count, DType type, Rank root,
                                   const CallOptions& options) {
  return Work(state_->start(state_->prepare(broadcast_request(data, count, type, root), options)));
}

void Communicator::reduce(const void* in, void* out, std::size_t count, DType type, Op op, Rank root,
                          const CallOptions& options) {
  state_->run(state_->prepare(reduce_request(in, out, count, type, op, root), options));
}

Work Communicator::reduce_async(const void* in, void* out, std::size_t count, DType type, Op op, Rank root,
                                const CallOptions& options) {
  return Work(state_->start(state_->prepare(reduce_request(in, out, count, type, op, root), options)));
}

/// An allreduce of nothing: as every result depends on every rank, nobody can leave before all have entered.
static constexpr CallOptions barrier_options{.name = "barrier"};

void Communicator::barrier() {
  allreduce(nullptr, nullptr, 0, DType::u8, Op::max, barrier_options);
}

Work Communicator::barrier_async() {
  return allreduce_async(nullptr, nullptr, 0, DType::u8, Op::max, barrier_options);
}

void Communicator::require_equal(const char* call, std::size_t found, std::size_t expected) {
  base::require(found == expected,
                "{}: the buffers hold {} and {} elements; see the sizes in communicator.hpp", call, found,
                expected);
}

}  // namespace tutti
