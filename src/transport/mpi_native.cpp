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

const void* or_in_place(const void* in, const void* out) {
  return in == out ? MPI_IN_PLACE : in;
}

class Native final : public NativeCollectives {
 public:
  Native() { mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup"); }

  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  ~Native() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&comm_);
  }

  bool knows(DType type) const override { return !is_half(type); }

  void barrier() override { mpi_check(MPI_Barrier(comm_), "MPI_Barrier"); }

  void allreduce(const void* in, void* out, std::size_t count, DType type, Op op) override {
    mpi_check(MPI_Allreduce(or_in_place(in, out), out, to_int(count), mpi_type(type), mpi_op(op), comm_),
              "MPI_Allreduce");
  }

  void reduce_scatter(const void* in, void* out, std::size_t count, DType type, Op op) override {
    mpi_check(MPI_Reduce_scatter_block(in, out, to_int(count), mpi_type(type), mpi_op(op), comm_),
              "MPI_Reduce_scatter_block");
  }

  void allgather(const void* in, void* out, std::size_t count, DType type) override {
    mpi_check(MPI_Allgather(in, to_int(count), mpi_type(type), out, to_int(count), mpi_type(type), comm_),
              "MPI_Allgather");
  }

  void broadcast(void* data, std::size_t count, DType type, Rank root) override {
    mpi_check(MPI_Bcast(data, to_int(count), mpi_type(type), root, comm_), "MPI_Bcast");
  }

  void reduce(const void* in, void* out, std::size_t count, DType type, Op op, Rank root) override {
    mpi_check(MPI_Reduce(in, out, to_int(count), mpi_type(type), mpi_op(op), root, comm_), "MPI_Reduce");
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace

std::unique_ptr<NativeCollectives> make_native_collectives() {
  return std::make_unique<Native>();
}

}  // namespace tutti::transport
