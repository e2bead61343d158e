#pragma once

#include <cstdint>

#include "cuda/kernels/messages.hpp"
#include "tutti/types.hpp"

namespace tutti::cuda {

/// kernel::reduce_many() on device memory, on a stream, with the same bits: target = all contributions in the
/// canonical order, divided if the divisor is not 0. `wide`: of the accumulator's type. Of one contribution
/// it is kernel::convert(). Returns what the launch returned, 0 (cudaSuccess) if it was taken.
struct Reduction {
  Op op = Op::sum;
  DType type = DType::f32;
  bool wide_contributions = false;
  bool wide_target = false;
  std::uint64_t divisor = 0;
};

int reduce_many(const Reduction& reduction, const Messages& contributions, void* target, std::uint64_t count,
                void* stream);

}  // namespace tutti::cuda
