#include "exchange/operation.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/kernel.hpp"

namespace tutti::exchange {

ExchangeOperation::ExchangeOperation(engine::Lookout& lookout, std::uint32_t sequence, std::string label)
    : lookout_(lookout),
      sequence_(sequence),
      label_(std::move(label)),
      rank_(lookout.transport().rank()),
      ranks_(lookout.transport().size()) {}

engine::Turn ExchangeOperation::advance() {
  try {
    return step();
  } catch (const std::exception& error) {
    lookout_.tell(engine::kind_of(error), sequence_, fmt::format("{}: {}", label_, error.what()));
    throw;
  }
}

void ExchangeOperation::look_around(Seconds idle) {
  lookout_.look(sequence_, idle, next_inquiry_, [this] { return describe(); });
}

void ExchangeOperation::abandon(const std::string& reason) noexcept {
  lookout_.tell(transport::Notice::Kind::timeout, sequence_, reason);
}

compress::Piece CodecOperation::piece_of(const Run& run, Rank rank) const {
  return {.parameter = run.parameter,
          .offset = run.offset,
          .size = run.size,
          .rows = run.rows,
          .step = request_.step,
          .seed = request_.seed,
          .rank = rank,
          .ranks = ranks_};
}

void CodecOperation::divide(const Run& run) const {
  if (request_.op != Op::average) return;
  const auto x = values(run);
  kernel::convert(DType::f32, Op::average, {x.data(), DType::f32}, {x.data(), DType::f32}, x.size(),
                  static_cast<std::uint64_t>(ranks_));
}

}  // namespace tutti::exchange
