#include "cuda/device.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

#include "tutti_config.hpp"

#if TUTTI_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace tutti::cuda {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

}  // namespace

std::string reason_of(int error) {
  switch (error) {
    case 34: return "the driver is a stub";
    case 35: return "no driver, or one too old for this runtime";
    case 46: return "all devices are busy or unavailable";
    case 100: return "no device";
    case 101: return "invalid device";
    case 802: return "the system is not ready (NVLink fabric)";
    case 803: return "driver and device do not fit together";
    case 999: return "unknown error of the driver";
    default: return "the runtime failed";
  }
}

Query query() {
  Query result;
#if TUTTI_HAVE_CUDA
  result.built = true;
  cudaRuntimeGetVersion(&result.runtime_version);
  const cudaError_t error = cudaGetDeviceCount(&result.devices);
  if (error != cudaSuccess) {
    result.devices = 0;
    result.error = static_cast<int>(error);
    result.reason = fmt::format("{} (error {})", reason_of(result.error), result.error);
    cudaGetLastError();  // takes the error back, so that later calls do not find it
  } else if (result.devices == 0) {
    result.reason = reason_of(100);
  }
#else
  result.reason = "built without CUDA";
#endif
  return result;
}

std::string describe_cuda() {
  const Query found = query();
  if (!found.built) return found.reason;
  const std::string runtime =
      fmt::format("CUDA runtime {}.{}", found.runtime_version / 1000, found.runtime_version % 1000 / 10);
  if (found.devices == 0) return fmt::format("no device: {}; {}", found.reason, runtime);
  return fmt::format("{} device{}; {}; collectives on device memory are not part of this version",
                     found.devices, found.devices == 1 ? "" : "s", runtime);
}

std::string describe_nccl() {
  if (!TUTTI_HAVE_NCCL) return "built without NCCL";
  const std::unique_ptr<void, CloseLibrary> library(dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL));
  if (!library) return "libnccl.so.2 not found";
  using GetVersion = int (*)(int*);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(library.get(), "ncclGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return "libnccl.so.2 does not tell its version";
  return fmt::format("{}.{}.{} (libnccl.so.2); not used by this version", version / 10000,
                     version / 100 % 100, version % 100);
}

}  // namespace tutti::cuda
