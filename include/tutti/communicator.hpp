#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tutti/buffer.hpp"
#include "tutti/error.hpp"
#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

/// Order in which contributions may be added. `canonical`: one fixed binary tree over rank numbers, so that
/// the bits of a sum do not depend on message size, bucketing, segmentation or algorithm. `any`: whatever is
/// fastest.
enum class Order : std::uint8_t { canonical, any };

/// What a call may add to its buffers; the defaults are right for most. Must agree on all ranks.
struct CallOptions {
  std::string_view name = {};  ///< of the tensor, for error reports and traces
  double prescale =
      1.0;  ///< each contribution is multiplied by this first, in the accumulation type; floating types only
  std::optional<Order> order = {};  ///< empty: the session's (TUTTI_ORDER, canonical by default)
  std::string_view algorithm =
      {};  ///< empty: chosen. A named algorithm runs even if its order is not canonical
};

namespace engine {
class CommunicatorState;
class Pending;
}  // namespace engine

/// A started collective. Its buffers must stay valid and untouched until wait() has returned. Movable; the
/// destructor waits, so that buffers cannot go before the operation (and drops its error: call wait() to see
/// it). While an exception passes through, it waits for 2 s at most; then the communicator is given up.
class TUTTI_API Work {
 public:
  Work() noexcept;
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work();

  /// Blocks until the result is there. Throws what the blocking call would have thrown. A second call does
  /// nothing.
  void wait();
  /// True when wait() would not block. Makes progress itself where no thread may do it unattended.
  bool done();

  explicit Work(std::shared_ptr<engine::Pending> pending) noexcept;

 private:
  std::shared_ptr<engine::Pending> pending_;
  int exceptions_;  ///< on their way when this was made
};

/// A group of ranks and the collectives over it, as in MPI: every member calls the same operations in the
/// same order.
///
/// Buffers: any alignment, any size_t count, zero included (a call with zero elements moves none, but is
/// compared with the other ranks' calls like any other). Input and output are either the same buffer ("in
/// place") or do not overlap at all; anything between is InvalidArgument.
///
/// Threads: one thread at a time per communicator. Different communicators may be used from different threads
/// if MPI was initialized with MPI_THREAD_MULTIPLE.
///
/// Errors: InvalidArgument before anything is sent; MismatchError, PeerLostError, TimeoutError from an
/// operation on the way. After one of these three the communicator refuses further operations.
class TUTTI_API Communicator {
 public:
  explicit Communicator(std::shared_ptr<engine::CommunicatorState> state) noexcept;
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  Rank rank() const noexcept;
  Rank size() const noexcept;

  /// Collective, and blocking. Ranks with the same color form a new communicator, numbered by (key, old
  /// rank). A negative color on any rank is InvalidArgument on all. Threads that split different
  /// communicators must do so in the same order on every rank.
  Communicator split(int color, int key = 0);

  /// Collective. `count` elements of memory that peers on this rank's node read in place: collectives whose
  /// buffers lie in it on all ranks copy less. The same count on every rank. Ordinary memory where ranks
  /// share none. Throws SystemError, on every rank, that names the bytes that are missing.
  template <class T>
  Buffer<T> allocate(std::size_t count) {
    static_cast<void>(dtype_of<T>);
    return {allocate_bytes(count, sizeof(T)), count};
  }

  // ---- with elements of C++ types
  // -------------------------------------------------------------------------------

  /// data[i] becomes op over all ranks of data[i]. The same count on every rank.
  template <class T>
  void allreduce(std::span<T> data, Op op, const CallOptions& options = {}) {
    allreduce(data.data(), data.data(), data.size(), dtype_of<T>, op, options);
  }

  /// Out of place: out.size() must equal in.size(); in is not written.
  template <class T>
  void allreduce(std::span<const T> in, std::span<T> out, Op op, const CallOptions& options = {}) {
    require_equal("allreduce", in.size(), out.size());
    allreduce(in.data(), out.data(), in.size(), dtype_of<T>, op, options);
  }

  template <class T>
  [[nodiscard]] Work allreduce_async(std::span<T> data, Op op, const CallOptions& options = {}) {
    return allreduce_async(data.data(), data.data(), data.size(), dtype_of<T>, op, options);
  }

  template <class T>
  [[nodiscard]] Work allreduce_async(std::span<const T> in, std::span<T> out, Op op,
                                     const CallOptions& options = {}) {
    require_equal("allreduce_async", in.size(), out.size());
    return allreduce_async(in.data(), out.data(), in.size(), dtype_of<T>, op, options);
  }

  /// out becomes this rank's block of the reduction: block r of in, in.size() = size() * out.size(). In
  /// place: out is block rank() of in; the other blocks are not written.
  template <class T>
  void reduce_scatter(std::span<const T> in, std::span<T> out, Op op, const CallOptions& options = {}) {
    require_equal("reduce_scatter", in.size(), out.size() * static_cast<std::size_t>(size()));
    reduce_scatter(in.data(), out.data(), out.size(), dtype_of<T>, op, options);
  }

  template <class T>
  [[nodiscard]] Work reduce_scatter_async(std::span<const T> in, std::span<T> out, Op op,
                                          const CallOptions& options = {}) {
    require_equal("reduce_scatter_async", in.size(), out.size() * static_cast<std::size_t>(size()));
    return reduce_scatter_async(in.data(), out.data(), out.size(), dtype_of<T>, op, options);
  }

  /// Block r of out becomes in of rank r; out.size() = size() * in.size(). In place: in is block rank() of
  /// out.
  template <class T>
  void allgather(std::span<const T> in, std::span<T> out, const CallOptions& options = {}) {
    require_equal("allgather", in.size() * static_cast<std::size_t>(size()), out.size());
    allgather(in.data(), out.data(), in.size(), dtype_of<T>, options);
  }

  template <class T>
  [[nodiscard]] Work allgather_async(std::span<const T> in, std::span<T> out,
                                     const CallOptions& options = {}) {
    require_equal("allgather_async", in.size() * static_cast<std::size_t>(size()), out.size());
    return allgather_async(in.data(), out.data(), in.size(), dtype_of<T>, options);
  }

  /// Like allgather with counts[r] elements from rank r, packed without gaps. counts: one per rank, the same
  /// on all ranks.
  template <class T>
  void allgatherv(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                  const CallOptions& options = {}) {
    allgatherv(in.data(), in.size(), out.data(), out.size(), counts, dtype_of<T>, options);
  }

  template <class T>
  [[nodiscard]] Work allgatherv_async(std::span<const T> in, std::span<T> out,
                                      std::span<const std::size_t> counts, const CallOptions& options = {}) {
    return allgatherv_async(in.data(), in.size(), out.data(), out.size(), counts, dtype_of<T>, options);
  }

  /// data of every rank becomes data of root.
  template <class T>
  void broadcast(std::span<T> data, Rank root, const CallOptions& options = {}) {
    broadcast(data.data(), data.size(), dtype_of<T>, root, options);
  }

  template <class T>
  [[nodiscard]] Work broadcast_async(std::span<T> data, Rank root, const CallOptions& options = {}) {
    return broadcast_async(data.data(), data.size(), dtype_of<T>, root, options);
  }

  /// data of root becomes the reduction; data of the other ranks is not written.
  template <class T>
  void reduce(std::span<T> data, Op op, Rank root, const CallOptions& options = {}) {
    reduce(data.data(), data.data(), data.size(), dtype_of<T>, op, root, options);
  }

  /// Out of place: out matters at root only and may be empty elsewhere.
  template <class T>
  void reduce(std::span<const T> in, std::span<T> out, Op op, Rank root, const CallOptions& options = {}) {
    if (rank() == root) require_equal("reduce", in.size(), out.size());
    reduce(in.data(), out.data(), in.size(), dtype_of<T>, op, root, options);
  }

  template <class T>
  [[nodiscard]] Work reduce_async(std::span<T> data, Op op, Rank root, const CallOptions& options = {}) {
    return reduce_async(data.data(), data.data(), data.size(), dtype_of<T>, op, root, options);
  }

  template <class T>
  [[nodiscard]] Work reduce_async(std::span<const T> in, std::span<T> out, Op op, Rank root,
                                  const CallOptions& options = {}) {
    if (rank() == root) require_equal("reduce_async", in.size(), out.size());
    return reduce_async(in.data(), out.data(), in.size(), dtype_of<T>, op, root, options);
  }

  /// Returns when every rank has called it.
  void barrier();
  /// Done when every rank has called it.
  [[nodiscard]] Work barrier_async();

  // ---- with element types known at run time; counts in elements
  // --------------------------------------------------

  void allreduce(const void* in, void* out, std::size_t count, DType type, Op op,
                 const CallOptions& options = {});
  [[nodiscard]] Work allreduce_async(const void* in, void* out, std::size_t count, DType type, Op op,
                                     const CallOptions& options = {});
  /// count: elements of one block.
  void reduce_scatter(const void* in, void* out, std::size_t count, DType type, Op op,
                      const CallOptions& options = {});
  [[nodiscard]] Work reduce_scatter_async(const void* in, void* out, std::size_t count, DType type, Op op,
                                          const CallOptions& options = {});
  /// count: elements of one block.
  void allgather(const void* in, void* out, std::size_t count, DType type, const CallOptions& options = {});
  [[nodiscard]] Work allgather_async(const void* in, void* out, std::size_t count, DType type,
                                     const CallOptions& options = {});
  void allgatherv(const void* in, std::size_t in_count, void* out, std::size_t out_count,
                  std::span<const std::size_t> counts, DType type, const CallOptions& options = {});
  [[nodiscard]] Work allgatherv_async(const void* in, std::size_t in_count, void* out, std::size_t out_count,
                                      std::span<const std::size_t> counts, DType type,
                                      const CallOptions& options = {});
  void broadcast(void* data, std::size_t count, DType type, Rank root, const CallOptions& options = {});
  [[nodiscard]] Work broadcast_async(void* data, std::size_t count, DType type, Rank root,
                                     const CallOptions& options = {});
  void reduce(const void* in, void* out, std::size_t count, DType type, Op op, Rank root,
              const CallOptions& options = {});
  [[nodiscard]] Work reduce_async(const void* in, void* out, std::size_t count, DType type, Op op, Rank root,
                                  const CallOptions& options = {});

  /// For tutti's own tools and tests.
  engine::CommunicatorState& state() noexcept { return *state_; }

 private:
  std::shared_ptr<std::byte> allocate_bytes(std::size_t count, std::size_t size);
  static void require_equal(const char* call, std::size_t found, std::size_t expected);

  std::shared_ptr<engine::CommunicatorState> state_;
};

}  // namespace tutti
