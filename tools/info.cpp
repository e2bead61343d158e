#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/host.hpp"
#include "base/options.hpp"
#include "base/wait.hpp"
#include "cuda/device.hpp"
#include "kernel/kernel.hpp"
#include "tools/command.hpp"
#include "tutti/session.hpp"
#include "tutti/version.hpp"
#include "tutti_config.hpp"

namespace tutti::tools {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string shared_memory() {
  struct statvfs space {};

  std::string text = "/dev/shm not there";
  if (statvfs("/dev/shm", &space) == 0) {
    const auto mebibytes = [&](fsblkcnt_t blocks) { return blocks * space.f_frsize >> 20U; };
    text = fmt::format("/dev/shm {} MiB, {} MiB free", mebibytes(space.f_blocks), mebibytes(space.f_bavail));
  }
  const int descriptor = memfd_create("tutti", MFD_CLOEXEC);
  text += descriptor >= 0 ? ", memfd available" : ", no memfd";
  if (descriptor >= 0) close(descriptor);
  return text;
}

std::string memory_limit() {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::string text;
    if (file >> text && text != "max" && text.size() < 16) return text + " bytes";
  }
  return "none";
}

/// "h1: ranks 0, 1; h2: ranks 2, 3", from everybody's host name.
std::string layout(Communicator& world) {
  constexpr std::size_t width = 64;
  std::array<char, width> mine{};
  const std::string host = base::host_name();
  std::memcpy(mine.data(), host.data(), std::min(host.size(), width - 1));
  std::vector<char> all(width * static_cast<std::size_t>(world.size()));
  world.allgather(mine.data(), all.data(), width, DType::i8);
  std::map<std::string, std::vector<Rank>> hosts;
  for (Rank rank = 0; rank < world.size(); ++rank)
    hosts[all.data() + width * static_cast<std::size_t>(rank)].push_back(rank);
  std::string text;
  for (const auto& [name, ranks] : hosts)
    text += fmt::format("{}{}: rank{} {}", text.empty() ? "" : "; ", name, ranks.size() == 1 ? "" : "s",
                        fmt::join(ranks, ", "));
  return text;
}

std::string set_variables() {
  std::string text;
  for (const std::string& name : base::environment_with_prefix("TUTTI_"))
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, *base::environment(name.c_str()));
  return text.empty() ? "none" : text;
}

Rows collect(Session& session) {
  Communicator& world = session.world();
  const SessionInfo& info = session.info();
  const base::LaunchHint hint = base::launch_hint();
  Rows rows;
  rows.emplace_back("version", fmt::format("tutti {}", tutti::version));
  rows.emplace_back("build", fmt::format("{}, {}", config::build_type, config::compiler));
  rows.emplace_back("MPI", info.mpi_library);
  rows.emplace_back("MPI threads", info.thread_level);
  rows.emplace_back("background progress",
                    fmt::format("{}: {}", info.background_progress ? "yes" : "no", info.progress_reason));
  rows.emplace_back("launcher", hint.size ? hint.launcher : "none (one rank)");
  rows.emplace_back("ranks", fmt::format("{}", world.size()));
  rows.emplace_back("layout", layout(world));
  rows.emplace_back("processors", fmt::format("{} usable by this rank", base::usable_processors()));
  rows.emplace_back("shared memory", shared_memory());
  rows.emplace_back("memory limit", memory_limit());
  rows.emplace_back(
      "SIMD", fmt::format("{} (usable: {})", kernel::simd_target(), fmt::join(kernel::simd_targets(), ", ")));
  rows.emplace_back("CUDA", cuda::describe_cuda());
  rows.emplace_back("NCCL", cuda::describe_nccl());
  rows.emplace_back("variables set", set_variables());
  return rows;
}

int run(bool json) {
  Session session;
  const Rows rows = collect(session);
  if (session.world().rank() != 0) return 0;
  if (json) {
    nlohmann::ordered_json object;
    for (const auto& [name, value] : rows) object[name] = value;
    fmt::print("{}\n", object.dump(2));
    return 0;
  }
  for (const auto& [name, value] : rows) fmt::print("{:<20} {}\n", name, value);
  return 0;
}

}  // namespace

std::function<int()> attach_info(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "As JSON");
  return [json] { return run(*json); };
}

}  // namespace tutti::tools
