#include "transport/mpi_native.hpp"

#include <climits>

#include "base/error.hpp"
#include "transport/mpi_call.hpp"

namespace tutti::transport {
namespace {

MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f32: return MPI_FLOAT;
    case DType::f64: return MPI_DOUBLE;
    case DType::i8: return MPI_INT8_T;
    case DType::u8: return MPI_UINT8_T;
    case DType::i32: return MPI_INT32_T;
    case DType::u32: return MPI_UINT32_T;
    case DType::i64: return MPI_INT64_T;
    case DType::u64: return MPI_UINT64_T;
    case DType::f16:
    case DType::bf16: break;
  }
  base::fail<InvalidArgument>("MPI has no type for {}", name_of(type));
}

MPI_Op mpi_op(Op op) {
  switch (op) {
    case Op::sum:
    case Op::average: return MPI_SUM;
    case Op::min: return MPI_MIN;
    case Op::max: return MPI_MAX;
    case Op::product: break;
  }
  return MPI_PROD;
}

int to_int(std::size_t count) {
  base::require(count <= INT_MAX, "MPI takes no more than {} elements, not {}", INT_MAX, count);
  return static_cast<int>(count);
}

/// The call's arguments as MPI wants them.
struct Arguments {
  explicit Arguments(const NativeCall& call)
      : in(call.in == call.out ? MPI_IN_PLACE : call.in),
        out(call.out),
        count(to_int(call.count)),
        type(mpi_type(call.type)),
        op(mpi_op(call.op)),
        root(call.root) {}

  const void* in;
  void* out;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  int root;
};

class Request final : public NativeRequest {
 public:
  bool test() override {
    int done = 0;
    mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

  MPI_Request request = MPI_REQUEST_NULL;
};

/// On the root of a reduction in place the input stands in the output; elsewhere it is the input.
const void* input_of_reduce(const NativeCall& call, MPI_Comm comm) {
  if (call.in != call.out) return call.in;
  int rank = 0;
  mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank == call.root ? MPI_IN_PLACE : call.in;
}

class Native final : public NativeCollectives {
 public:
  Native(MPI_Comm comm, bool owns) : comm_(comm), owns_(owns) {}

  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  ~Native() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (owns_ && finalized == 0) MPI_Comm_free(&comm_);
  }

  bool knows(DType type, std::size_t count) const override { return !is_half(type) && count <= INT_MAX; }

  void barrier() override { mpi_check(MPI_Barrier(comm_), "MPI_Barrier"); }

  void run(const NativeCall& call) override {
    const Arguments a(call);
    switch (call.kind) {
      case NativeKind::allreduce:
        mpi_check(MPI_Allreduce(a.in, a.out, a.count, a.type, a.op, comm_), "MPI_Allreduce");
        return;
      case NativeKind::reduce_scatter:
        mpi_check(MPI_Reduce_scatter_block(call.in, a.out, a.count, a.type, a.op, comm_),
                  "MPI_Reduce_scatter_block");
        return;
      case NativeKind::allgather:
        mpi_check(MPI_Allgather(call.in, a.count, a.type, a.out, a.count, a.type, comm_), "MPI_Allgather");
        return;
      case NativeKind::broadcast:
        mpi_check(MPI_Bcast(a.out, a.count, a.type, a.root, comm_), "MPI_Bcast");
        return;
      case NativeKind::reduce:
        mpi_check(MPI_Reduce(input_of_reduce(call, comm_), a.out, a.count, a.type, a.op, a.root, comm_),
                  "MPI_Reduce");
        return;
    }
  }

  std::unique_ptr<NativeRequest> start(const NativeCall& call) override {
    const Arguments a(call);
    auto started = std::make_unique<Request>();
    MPI_Request* const request = &started->request;
    switch (call.kind) {
      case NativeKind::allreduce:
        mpi_check(MPI_Iallreduce(a.in, a.out, a.count, a.type, a.op, comm_, request), "MPI_Iallreduce");
        break;
      case NativeKind::reduce_scatter:
        mpi_check(MPI_Ireduce_scatter_block(call.in, a.out, a.count, a.type, a.op, comm_, request),
                  "MPI_Ireduce_scatter_block");
        break;
      case NativeKind::allgather:
        mpi_check(MPI_Iallgather(call.in, a.count, a.type, a.out, a.count, a.type, comm_, request),
                  "MPI_Iallgather");
        break;
      case NativeKind::broadcast:
        mpi_check(MPI_Ibcast(a.out, a.count, a.type, a.root, comm_, request), "MPI_Ibcast");
        break;
      case NativeKind::reduce:
        mpi_check(
            MPI_Ireduce(input_of_reduce(call, comm_), a.out, a.count, a.type, a.op, a.root, comm_, request),
            "MPI_Ireduce");
        break;
    }
    return started;
  }

 private:
  MPI_Comm comm_;
  bool owns_;
};

}  // namespace

std::unique_ptr<NativeCollectives> make_native_collectives(MPI_Comm comm) {
  return std::make_unique<Native>(comm, false);
}

std::unique_ptr<NativeCollectives> make_native_collectives() {
  MPI_Comm comm = MPI_COMM_NULL;
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  return std::make_unique<Native>(comm, true);
}

}  // namespace tutti::transport
