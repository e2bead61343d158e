#include "conformance/mismatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tutti/error.hpp"

namespace tutti::conformance {
namespace {

enum class What : std::uint8_t { allreduce, reduce_scatter, allgather, broadcast, reduce, async };

struct Call {
  What what = What::allreduce;
  std::size_t count = 0;
  DType type = DType::f32;
  Op op = Op::sum;
  std::string_view name = {};
  double prescale = 1.0;
  Rank root = 0;
  std::string_view algorithm = {};
};

struct Mismatch {
  Call most;
  Call odd;
};

// Sizes on both sides of every limit at which MPI libraries and tutti change their ways.
constexpr std::array table{
    Mismatch{{.count = 16}, {.count = 17}},
    Mismatch{{.count = 16}, {.count = 300}},
    Mismatch{{.count = 300}, {.count = 16}},
    Mismatch{{.count = 1024}, {.count = 2048}},
    Mismatch{{.count = 16384}, {.count = 1024}},
    Mismatch{{.count = 1024}, {.count = 16384}},
    Mismatch{{.count = 32768}, {.count = 262144}},
    Mismatch{{.count = 262144}, {.count = 32768}},
    Mismatch{{.count = 262144}, {.count = 262145}},
    Mismatch{{.count = 0}, {.count = 1}},
    Mismatch{{.count = 1000}, {.count = 0}},
    Mismatch{{.count = 100000}, {.count = 0}},
    Mismatch{{.count = 64, .type = DType::f32}, {.count = 64, .type = DType::i32}},
    Mismatch{{.count = 64, .type = DType::f32}, {.count = 32, .type = DType::f64}},
    Mismatch{{.count = 50000, .type = DType::f16}, {.count = 50000, .type = DType::bf16}},
    Mismatch{{.count = 64, .op = Op::sum}, {.count = 64, .op = Op::max}},
    Mismatch{{.count = 64, .name = "conv1.weight"}, {.count = 64, .name = "conv1.bias"}},
    Mismatch{{.count = 64, .prescale = 0.5}, {.count = 64}},
    Mismatch{{.count = 64}, {.what = What::allgather, .count = 64}},
    Mismatch{{.what = What::reduce_scatter, .count = 64}, {.what = What::allgather, .count = 64}},
    Mismatch{{.what = What::broadcast, .count = 64}, {.count = 64}},
    Mismatch{{.what = What::reduce, .count = 64}, {.what = What::broadcast, .count = 64}},
    Mismatch{{.what = What::broadcast, .count = 5000, .root = 0},
             {.what = What::broadcast, .count = 5000, .root = 1}},
    Mismatch{{.count = 64}, {.count = 64, .algorithm = "ring"}},
    Mismatch{{.count = 64, .algorithm = "direct"}, {.count = 64}},
    Mismatch{{.what = What::async, .count = 5000}, {.what = What::async, .count = 4000}},
};

constexpr std::size_t guard = 4096;
constexpr std::uint8_t pattern = 0xa5;

/// A buffer between two guards.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : bytes_(bytes), memory_(bytes + 2 * guard) {
    std::fill(memory_.begin(), memory_.begin() + guard, pattern);
    std::fill(memory_.end() - guard, memory_.end(), pattern);
  }

  std::uint8_t* data() { return memory_.data() + guard; }

  bool intact() const {
    const auto good = [](std::uint8_t b) { return b == pattern; };
    return std::all_of(memory_.begin(), memory_.begin() + guard, good) &&
           std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(guard + bytes_), memory_.end(), good);
  }

 private:
  std::size_t bytes_;
  std::vector<std::uint8_t> memory_;
};

void carry_out(Communicator& c, const Call& call, void* in, void* out) {
  const CallOptions options{.name = call.name, .prescale = call.prescale, .algorithm = call.algorithm};
  switch (call.what) {
    case What::allreduce: c.allreduce(in, out, call.count, call.type, call.op, options); break;
    case What::reduce_scatter: c.reduce_scatter(in, out, call.count, call.type, call.op, options); break;
    case What::allgather: c.allgather(in, out, call.count, call.type, options); break;
    case What::broadcast: c.broadcast(out, call.count, call.type, call.root, options); break;
    case What::reduce: c.reduce(in, out, call.count, call.type, call.op, call.root, options); break;
    case What::async: c.allreduce_async(in, out, call.count, call.type, call.op, options).wait(); break;
  }
}

}  // namespace

std::size_t mismatches() {
  return table.size();
}

std::size_t mismatch_bytes(std::size_t number) {
  const Mismatch& entry = table[number];
  return std::max(entry.most.count * size_of(entry.most.type), entry.odd.count * size_of(entry.odd.type));
}

std::string run_mismatch(Communicator& communicator, std::size_t number, Rank odd) {
  const Call& call = communicator.rank() == odd ? table[number].odd : table[number].most;
  const std::size_t room = call.count * size_of(call.type) * static_cast<std::size_t>(communicator.size());
  Guarded in(room);
  Guarded out(room);
  const std::string what = fmt::format("mismatch {} with odd rank {} on rank {} of {}", number, odd,
                                       communicator.rank(), communicator.size());
  std::string problem = fmt::format("{}: nothing was thrown", what);
  try {
    carry_out(communicator, call, in.data(), out.data());
    communicator.barrier();
  } catch (const MismatchError& error) {
    const std::string_view text = error.what();
    const bool good = text.find("operation #") != text.npos && text.find(" of ") != text.npos &&
                      text.find("rank") != text.npos &&
                      (text.find("instead") != text.npos || text.find("an earlier one differs") != text.npos);
    problem = good ? "" : fmt::format("{}: the message says too little: {}", what, text);
  } catch (const std::exception& error) {
    problem = fmt::format("{}: not a mismatch: {}", what, error.what());
  }
  if (!in.intact() || !out.intact())
    problem += fmt::format("{}: memory outside the buffers was written", what);
  return problem;
}

}  // namespace tutti::conformance
