#include "cuda/reduce.hpp"

#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/reduce.hpp"

namespace tutti::cuda {
namespace {

struct Call {
  const Reduction& reduction;
  const Messages& contributions;
  void* target;
  std::uint64_t count;
  cudaStream_t stream;
};

template <DType type, Op op>
cudaError_t run(const Call& call) {
  return launch<Reduce<type, op>>({.contributions = call.contributions,
                                   .target = call.target,
                                   .count = call.count,
                                   .divisor = call.reduction.divisor,
                                   .wide_contributions = call.reduction.wide_contributions,
                                   .wide_target = call.reduction.wide_target},
                                  call.stream);
}

template <DType type>
cudaError_t by_op(const Call& call) {
  // A sum, and a division by what the call says.
  constexpr Op average = is_floating(type) || size_of(type) == 8 ? Op::sum : Op::average;
  // Sums and products of integers have the same bits with and without a sign.
  constexpr DType unsigned_type = type == DType::i8    ? DType::u8
                                  : type == DType::i32 ? DType::u32
                                  : type == DType::i64 ? DType::u64
                                                       : type;
  switch (call.reduction.op) {
    case Op::sum: return run<unsigned_type, Op::sum>(call);
    case Op::average: return run<type, average>(call);
    case Op::min: return run<type, Op::min>(call);
    case Op::max: return run<type, Op::max>(call);
    case Op::product: return run<unsigned_type, Op::product>(call);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

int reduce_many(const Reduction& reduction, const Messages& contributions, void* target, std::uint64_t count,
                void* stream) {
  const Call call{reduction, contributions, target, count, static_cast<cudaStream_t>(stream)};
  switch (reduction.type) {
    case DType::f32: return by_op<DType::f32>(call);
    case DType::f64: return by_op<DType::f64>(call);
    case DType::f16: return by_op<DType::f16>(call);
    case DType::bf16: return by_op<DType::bf16>(call);
    case DType::i8: return by_op<DType::i8>(call);
    case DType::u8: return by_op<DType::u8>(call);
    case DType::i32: return by_op<DType::i32>(call);
    case DType::u32: return by_op<DType::u32>(call);
    case DType::i64: return by_op<DType::i64>(call);
    case DType::u64: return by_op<DType::u64>(call);
  }
  return cudaErrorInvalidValue;
}

}  // namespace tutti::cuda
