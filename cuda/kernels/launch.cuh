#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/cta.hpp"

/// The GPU's side of cta.hpp; for nvcc only.
namespace tutti::cuda {

class DeviceCta {
 public:
  __device__ unsigned thread() const { return threadIdx.x; }

  __device__ unsigned lane() const { return threadIdx.x % warp_lanes; }

  __device__ unsigned warp() const { return threadIdx.x / warp_lanes; }

  __device__ unsigned block() const { return blockIdx.x; }

  __device__ unsigned blocks() const { return gridDim.x; }

  __device__ void sync() { __syncthreads(); }

  template <class T>
  __device__ T shuffle_xor(T value, unsigned mask) {
    return __shfl_xor_sync(0xFFFFFFFFU, value, static_cast<int>(mask));
  }

  __device__ std::uint32_t ballot(bool condition) { return __ballot_sync(0xFFFFFFFFU, condition); }

  __device__ std::uint32_t add(std::uint32_t* place, std::uint32_t value) { return atomicAdd(place, value); }
};

/// Two blocks at least on a multiprocessor: without that, the compiler would rather spill than use more than
/// 64 registers.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, 2)
    run_kernel(const __grid_constant__ typename Kernel::Args args) {
  __shared__ typename Kernel::Shared shared;
  DeviceCta cta;
  Kernel::run(cta, shared, args);
}

/// More blocks than a device runs at a time bring nothing: kernels stride over the rest.
inline constexpr std::uint64_t most_blocks = 132 * 16;

template <class Kernel>
cudaError_t launch(const typename Kernel::Args& args, cudaStream_t stream) {
  const std::uint64_t blocks = Kernel::blocks_for(args);
  if (blocks == 0) return cudaSuccess;
  run_kernel<Kernel><<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), Kernel::threads, 0,
                       stream>>>(args);
  return cudaGetLastError();
}

}  // namespace tutti::cuda
