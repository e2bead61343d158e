#pragma once

// The only header of tutti that includes mpi.h; only the files of this folder may include it.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>
#include <string>
#include <string_view>

#include "transport/mpi_native.hpp"
#include "transport/transport.hpp"

namespace tutti::transport {

std::string mpi_error_text(int code);

/// Throws Error naming the call unless it succeeded.
void mpi_check(int code, std::string_view call);

/// Collective over `comm`, which the transport owns from then on. `identity`: the same on all ranks, and no
/// other communicator's.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, std::uint64_t identity);

/// The library's collectives on `comm`, which stays the caller's.
std::unique_ptr<NativeCollectives> make_native_collectives(MPI_Comm comm);

}  // namespace tutti::transport
