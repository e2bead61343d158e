#pragma once

/// Before functions that the CPU's loops and GPU kernels share. Empty without CUDA.
#ifdef __CUDACC__
#define TUTTI_HD __host__ __device__
#else
#define TUTTI_HD
#endif
