#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tutti/types.hpp"

namespace tutti::transport {

enum class NativeKind : std::uint8_t { allreduce, reduce_scatter, allgather, broadcast, reduce };

/// A collective as MPI has it. `count`: elements of the whole buffer (allreduce, broadcast, reduce) or of one
/// block (reduce_scatter, allgather). The same pointer for both buffers is in place for allreduce and reduce;
/// the buffers of the others must not overlap. Op::average is a sum: MPI has no average.
struct NativeCall {
  NativeKind kind = NativeKind::allreduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  DType type = DType::f32;
  Op op = Op::sum;
  Rank root = 0;
};

/// A nonblocking call on its way. Must be tested until it is done before it goes.
class NativeRequest {
 public:
  NativeRequest() = default;
  NativeRequest(const NativeRequest&) = delete;
  NativeRequest& operator=(const NativeRequest&) = delete;
  virtual ~NativeRequest() = default;
  virtual bool test() = 0;
};

/// The collectives of the MPI library itself, over the ranks of one communicator. Every rank makes the same
/// calls in the same order, blocking or not alike.
class NativeCollectives {
 public:
  NativeCollectives() = default;
  NativeCollectives(const NativeCollectives&) = delete;
  NativeCollectives& operator=(const NativeCollectives&) = delete;
  virtual ~NativeCollectives() = default;
  /// MPI has no half types, and counts are an int.
  virtual bool knows(DType type, std::size_t count) const = 0;
  virtual void barrier() = 0;
  /// Throws InvalidArgument for what it does not know, Error if MPI says that it failed.
  virtual void run(const NativeCall& call) = 0;
  virtual std::unique_ptr<NativeRequest> start(const NativeCall& call) = 0;
};

/// Collective, after MPI was initialized: over a duplicate of MPI_COMM_WORLD.
std::unique_ptr<NativeCollectives> make_native_collectives();

}  // namespace tutti::transport
