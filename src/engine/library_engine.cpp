#include "engine/library_engine.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "kernel/kernel.hpp"

namespace tutti::engine {

using schedule::Collective;
using transport::NativeKind;

namespace {

NativeKind kind_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce: return NativeKind::allreduce;
    case Collective::reduce_scatter: return NativeKind::reduce_scatter;
    case Collective::allgather: return NativeKind::allgather;
    case Collective::broadcast: return NativeKind::broadcast;
    case Collective::reduce: break;
  }
  return NativeKind::reduce;
}

}  // namespace

LibraryCall::LibraryCall(const Request& request, Rank rank, Rank ranks, bool mixed)
    : request_(request),
      rank_(rank),
      contributors_(request.contributors != 0 ? request.contributors : static_cast<std::uint64_t>(ranks)) {
  call_ = {.kind = kind_of(request.collective),
           .in = request.input,
           .out = request.output,
           .count = request.count,
           .type = request.type,
           .op = request.op,
           .root = request.root};
  const std::size_t bytes = request.count * request.element_bytes();
  if (!request.in_place(rank)) return;
  if (request.collective == Collective::reduce_scatter) {
    aside_ = AlignedBytes(bytes);
    call_.out = aside_.data();
  } else if (request.collective == Collective::allgather || (mixed && schedule::adds(request.collective))) {
    aside_ = AlignedBytes(bytes);
    kernel::copy(aside_.data(), request.input, bytes);
    call_.in = aside_.data();
  }
}

void LibraryCall::finish() {
  if (!schedule::adds(request_.collective)) return;
  if (request_.collective == Collective::reduce && rank_ != request_.root) return;
  const bool average = request_.op == Op::average;
  if (average || (is_floating(request_.type) && !request_.any_order)) {
    const std::uint64_t divisor = average ? contributors_ : 0;
    const kernel::Target target{request_.output, request_.type};
    const kernel::Source source{call_.out, request_.type};
    if (average)
      kernel::convert(request_.type, request_.op, target, source, request_.count, divisor);
    else
      kernel::scale(request_.type, request_.op, target, source, request_.count, 1.0);
  } else if (call_.out != request_.output) {
    kernel::copy(request_.output, call_.out, request_.count * request_.element_bytes());
  }
}

std::string Library::refusal(const Request& request) const {
  if (!native_.knows(request.type, request.count))
    return fmt::format("MPI has no {} elements of {}", request.count, name_of(request.type));
  if (!request.counts.empty()) return "it does not do allgatherv";
  if (request.prescale != 1.0) return "MPI does not scale";
  if (!schedule::adds(request.collective)) return {};
  if (request.collective == Collective::reduce) return "some MPI libraries crash in reduce (MPICH 4.0)";
  if (request.op == Op::average && !is_floating(request.type))
    return "MPI's sums of integers may overflow where averages may not";
  const bool bytes = request.type == DType::i8 || request.type == DType::u8;
  if (bytes && (request.op == Op::sum || request.op == Op::product))
    return "some MPI libraries saturate sums of 8-bit integers (Open MPI 4 with AVX), here they wrap";
  const bool compares = request.op == Op::min || request.op == Op::max;
  if (!is_floating(request.type) && !is_signed(request.type) && compares)
    return "some MPI libraries compare unsigned integers as if they had a sign (MPICH 4.0)";
  if (is_floating(request.type) && compares) return "MPI does not say what min and max make of NaN";
  if (!request.any_order && !order_is_free(request, ranks_))
    return "MPI adds in an order of its own, and canonical order was asked for";
  return {};
}

/// Waits for all ranks, then for its turn.
class LibraryOperation final : public Operation {
 public:
  LibraryOperation(Library& library, const Request& request, const Library::Entry& entry, std::string label,
                   std::optional<Library::Turnout>* blocking)
      : library_(library),
        request_(request),
        label_(std::move(label)),
        blocking_(blocking),
        here_(turnout_of(request, library.rank_, blocking == nullptr)),
        entry_(entry(here_, all_)) {}

  ~LibraryOperation() override {
    if (!left_ && library_.failure_.empty()) library_.failure_ = "it was given up";
    forget();
  }

  Turn advance() override {
    if (request_running_) {
      if (!request_running_->test()) return Turn::idle;
      call_->finish();
      request_running_.reset();
      return Turn::done;
    }
    if (entry_) {
      const Turn turn = entry_->advance();
      if (turn != Turn::done) return turn;
      entry_.reset();
    }
    if (ticket_ != library_.current_) {
      if (!library_.failure_.empty())
        throw PeerLostError(
            fmt::format("{}: an operation before it has failed: {}", label_, library_.failure_));
      return Turn::idle;
    }
    left_ = true;
    if (request_.count == 0) {
      ++library_.current_;
      return Turn::done;
    }
    if (blocking_ != nullptr && all_.asynchronous == 0) {
      *blocking_ = all_;  // the caller ends the turn
      return Turn::done;
    }
    call_ = std::make_unique<LibraryCall>(request_, library_.rank_, library_.ranks_, all_.mixed());
    request_running_ = library_.native_.start(call_->call());
    ++library_.current_;
    return Turn::moved;
  }

  std::string describe() const override {
    if (entry_) return entry_->describe();
    if (request_running_) return fmt::format("{}: waits for MPI", label_);
    return fmt::format("{}: waits for the operation before it", label_);
  }

  void look_around(Seconds idle) override {
    if (entry_) entry_->look_around(idle);
  }

  void abandon(const std::string& reason) noexcept override {
    if (entry_) entry_->abandon(reason);
    if (library_.failure_.empty()) library_.failure_ = reason;
    forget();
  }

 private:
  static Library::Turnout turnout_of(const Request& request, Rank rank, bool asynchronous) {
    const std::uint8_t in_place = request.in_place(rank) ? 1 : 0;
    const std::uint8_t out_of_place = in_place == 0 ? 1 : 0;
    return {asynchronous ? std::uint8_t{1} : std::uint8_t{0}, in_place, out_of_place};
  }

  /// MPI cannot take a collective back, and may still write.
  void forget() noexcept {
    if (!request_running_) return;
    static_cast<void>(request_running_.release());  // NOLINT(bugprone-unused-return-value)
    static_cast<void>(call_.release());             // NOLINT(bugprone-unused-return-value)
  }

  Library& library_;
  const std::uint64_t ticket_ = library_.next_++;
  Request request_;
  std::string label_;
  std::optional<Library::Turnout>* blocking_;
  Library::Turnout here_;
  Library::Turnout all_;
  std::unique_ptr<Operation> entry_;
  std::unique_ptr<LibraryCall> call_;
  std::unique_ptr<transport::NativeRequest> request_running_;
  bool left_ = false;
};

std::unique_ptr<Operation> Library::start(const Request& request, const Entry& entry, std::string label,
                                          std::optional<Turnout>* blocking) {
  return std::make_unique<LibraryOperation>(*this, request, entry, std::move(label), blocking);
}

void Library::run(const Request& request, const Turnout& turnout) {
  try {
    LibraryCall call(request, rank_, ranks_, turnout.mixed());
    native_.run(call.call());
    ++current_;
    call.finish();
  } catch (const std::exception& error) {
    if (failure_.empty()) failure_ = error.what();
    throw;
  }
}

}  // namespace tutti::engine
