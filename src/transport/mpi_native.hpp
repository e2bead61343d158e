#pragma once

#include <cstddef>
#include <memory>

#include "tutti/types.hpp"

namespace tutti::transport {

/// The collectives of the MPI library itself, blocking, over all ranks: what tutti is measured against.
class NativeCollectives {
 public:
  NativeCollectives() = default;
  NativeCollectives(const NativeCollectives&) = delete;
  NativeCollectives& operator=(const NativeCollectives&) = delete;
  virtual ~NativeCollectives() = default;
  /// MPI has no half types, and no average: that is its sum.
  virtual bool knows(DType type) const = 0;
  virtual void barrier() = 0;
  virtual void allreduce(const void* in, void* out, std::size_t count, DType type, Op op) = 0;
  virtual void reduce_scatter(const void* in, void* out, std::size_t count, DType type, Op op) = 0;
  virtual void allgather(const void* in, void* out, std::size_t count, DType type) = 0;
  virtual void broadcast(void* data, std::size_t count, DType type, Rank root) = 0;
  virtual void reduce(const void* in, void* out, std::size_t count, DType type, Op op, Rank root) = 0;
};

/// Collective, after MPI was initialized. Counts above INT_MAX are InvalidArgument.
std::unique_ptr<NativeCollectives> make_native_collectives();

}  // namespace tutti::transport
