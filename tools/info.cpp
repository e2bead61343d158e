#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/host.hpp"
#include "base/options.hpp"
#include "base/wait.hpp"
#include "cuda/device.hpp"
#include "engine/communicator_state.hpp"
#include "kernel/kernel.hpp"
#include "tools/command.hpp"
#include "tutti/session.hpp"
#include "tutti/version.hpp"
#include "tutti_config.hpp"

namespace tutti::tools {
namespace {

/// One line of the report: what people read, and the same for programs.
struct Row {
  std::string name;
  std::string text;
  nlohmann::ordered_json value;
};

Row row(std::string name, const std::string& text) {
  return {std::move(name), text, text};
}

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

/// What each rank says of itself, at every rank.
struct Place {
  std::array<char, 64> host;
  std::int32_t process;
  std::uint32_t processors;
};

std::vector<Place> gather_places(Communicator& world) {
  Place mine{};
  const std::string host = base::host_name();
  host.copy(mine.host.data(), mine.host.size() - 1);
  mine.process = base::process_id();
  mine.processors = base::usable_processors();
  std::vector<Place> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, all.data(), sizeof mine, DType::u8);
  return all;
}

/// "h1: ranks 0, 1; h2: ranks 2, 3", by host name.
Row layout(const std::vector<Place>& places) {
  std::map<std::string, std::vector<std::size_t>> hosts;
  Row result{"layout", "", nlohmann::ordered_json::array()};
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const std::string host(places[rank].host.data());
    hosts[host].push_back(rank);
    result.value.push_back({{"rank", rank},
                            {"host", host},
                            {"pid", places[rank].process},
                            {"processors", places[rank].processors}});
  }
  for (const auto& [name, ranks] : hosts)
    result.text += fmt::format("{}{}: rank{} {}", result.text.empty() ? "" : "; ", name,
                               ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
  return result;
}

/// The ranks of one host share its processors unless each is bound to its own.
Row processors(const std::vector<Place>& places) {
  const auto [least, most] =
      std::minmax_element(places.begin(), places.end(),
                          [](const Place& a, const Place& b) { return a.processors < b.processors; });
  const std::string range = least->processors == most->processors
                                ? fmt::format("{}", least->processors)
                                : fmt::format("{} to {}", least->processors, most->processors);
  return {"processors",
          range + " usable by each rank",
          {{"least", least->processors}, {"most", most->processors}}};
}

/// Data that tutti train can read without a download: built in, or where Debian's packages put them.
Row data_sets() {
  constexpr const char* fashion = "/usr/share/datasets/fashion-mnist";
  Row result{"data sets", "digits (built in)", {"digits"}};
  std::error_code error;
  if (std::filesystem::is_directory(fashion, error)) {
    result.text += fmt::format("; {} (Fashion-MNIST, for --data)", fashion);
    result.value.push_back(fashion);
  }
  return result;
}

Row set_variables() {
  Row result{"variables set", "", nlohmann::ordered_json::object()};
  for (const std::string& name : base::environment_with_prefix("TUTTI_")) {
    const std::string value = *base::environment(name.c_str());
    result.text += fmt::format("{}{}={}", result.text.empty() ? "" : " ", name, value);
    result.value[name] = value;
  }
  if (result.text.empty()) result.text = "none";
  return result;
}

std::string build() {
  const std::string_view revision = config::revision;
  return fmt::format("{}, {}{}{}", config::build_type, config::compiler,
                     revision.empty() ? "" : ", revision ", revision);
}

Row simd() {
  std::vector<std::string> usable;
  for (const std::string_view name : kernel::simd_targets()) usable.emplace_back(name);
  return {"SIMD",
          fmt::format("{} (usable: {})", kernel::simd_target(), fmt::join(usable, ", ")),
          {{"in use", std::string(kernel::simd_target())}, {"usable", usable}}};
}

Row cuda_row() {
  const cuda::Query found = cuda::query();
  return {"CUDA",
          cuda::describe_cuda(),
          {{"built", found.built},
           {"devices", found.devices},
           {"runtime", found.runtime_version},
           {"error", found.error},
           {"reason", found.reason}}};
}

Row profile_row(const engine::Profile* profile) {
  if (profile == nullptr) return {"profile", "none", nullptr};
  return {"profile",
          fmt::format("{}, hash {:016x}, {} rules", profile->path, profile->hash, profile->rules.size()),
          {{"path", profile->path},
           {"hash", fmt::format("{:016x}", profile->hash)},
           {"rules", profile->rules.size()}}};
}

/// Collective: every rank must call it, rank 0 prints.
std::vector<Row> collect(Session& session) {
  Communicator& world = session.world();
  const SessionInfo& info = session.info();
  const base::LaunchHint hint = base::launch_hint();
  const std::vector<Place> places = gather_places(world);
  return {
      {"version", fmt::format("tutti {}", tutti::version), tutti::version},
      row("build", build()),
      row("MPI", info.mpi_library),
      row("MPI threads", info.thread_level),
      {"background progress",
       fmt::format("{}: {}", info.background_progress ? "yes" : "no", info.progress_reason),
       {{"on", info.background_progress}, {"reason", info.progress_reason}}},
      row("launcher", hint.size ? hint.launcher : "none (one rank)"),
      {"ranks", fmt::format("{}", world.size()), world.size()},
      layout(places),
      processors(places),
      row("paths", world.state().paths()),
      profile_row(world.state().runtime().profile.get()),
      row("shared memory", shared_memory()),
      row("memory limit", memory_limit()),
      simd(),
      cuda_row(),
      row("NCCL", cuda::describe_nccl()),
      data_sets(),
      set_variables(),
  };
}

int run(bool json) {
  Session session;
  const std::vector<Row> rows = collect(session);
  if (session.world().rank() != 0) return 0;
  if (json) {
    nlohmann::ordered_json object;
    for (const Row& each : rows) object[each.name] = each.value;
    fmt::print("{}\n", object.dump(2));
    return 0;
  }
  for (const Row& each : rows) fmt::print("{:<20} {}\n", each.name, each.text);
  return 0;
}

}  // namespace

std::function<int()> attach_info(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "As JSON");
  return [json] { return run(*json); };
}

}  // namespace tutti::tools
