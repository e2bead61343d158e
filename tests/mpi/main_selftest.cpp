// Sample test cases for the main() of tests under mpirun: tests/mpi/CMakeLists.txt runs them one by one and
// expects what they are made to do. Hidden, so that nothing runs unless it is named.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <stdexcept>

#include "support/catch.hpp"

namespace {

int my_rank() {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

TEST_CASE("passes on every rank", "[.passes]") {
  CHECK(my_rank() >= 0);
  CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
}

TEST_CASE("fails on rank 1", "[.fails]") {
  CHECK(my_rank() != 1);
}

TEST_CASE("fails alike on every rank but 0", "[.alike]") {
  const bool good = my_rank() == 0;
  CHECK(good);
}

TEST_CASE("rank 1 throws while the others wait for it", "[.throws]") {
  if (my_rank() == 1) throw std::runtime_error("rank 1 gives up");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("rank 0 waits for a message that nobody sends", "[.hangs]") {
  int value = 0;
  if (my_rank() == 0) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(value == 0);
}
