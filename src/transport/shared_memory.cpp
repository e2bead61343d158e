#include "transport/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/host.hpp"
#include "transport/descriptor.hpp"

namespace tutti::transport {
namespace {

struct Mapping final : SharedMemory {
  Mapping(int descriptor, std::size_t size) : bytes_(size) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED)
      base::fail<SystemError>("cannot map {} bytes of shared memory: {}", size, base::errno_text(errno));
    data_ = static_cast<std::byte*>(at);
  }

  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  ~Mapping() override { munmap(data_, bytes_); }

  std::byte* data() const override { return data_; }

  std::size_t bytes() const override { return bytes_; }

  /// So that no page has to be found later, when it counts.
  void populate() const {
#ifdef MADV_POPULATE_WRITE
    if (madvise(data_, bytes_, MADV_POPULATE_WRITE) == 0) return;
#endif
    constexpr std::size_t page = 4096;
    for (std::size_t at = 0; at < bytes_; at += page)
      static_cast<void>(*static_cast<volatile std::byte*>(data_ + at));
  }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

Record record_of(std::string_view text) {
  Record record{};
  text.copy(record.data(), record.size() - 1);
  return record;
}

std::string_view text_of(const Record& record) {
  return {record.data(), strnlen(record.data(), record.size())};
}

/// Collective. Throws the first complaint of any rank, on every rank.
void agree(const NodePlace& place, const std::string& complaint) {
  for (const Record& record : place.gather(record_of(complaint))) {
    if (!text_of(record).empty()) throw SystemError(std::string(text_of(record)));
  }
}

std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : otherwise;
}

std::uint64_t number_after(std::string_view wanted, const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  for (std::string word; file >> word;) {
    if (word == wanted && file >> value) return value;
  }
  return 0;
}

/// What the control group of this process may still take, if it has a limit (cgroup v2).
std::uint64_t free_in_control_group() {
  constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    std::uint64_t room = unlimited;
    for (std::filesystem::path group(line.substr(3)); !group.relative_path().empty();
         group = group.parent_path()) {
      const std::string folder = "/sys/fs/cgroup" + group.string();
      const std::uint64_t most = number_in(folder + "/memory.max", unlimited);
      if (most == unlimited) continue;
      // Cached files count as used, but go when memory is needed.
      const std::uint64_t used = number_in(folder + "/memory.current", 0);
      const std::uint64_t cache = number_after("inactive_file", folder + "/memory.stat");
      room = std::min(room, most - std::min(most, used - std::min(used, cache)));
    }
    return room;
  }
  return unlimited;
}

std::uint64_t free_on_machine() {
  const std::uint64_t kibibytes = number_after("MemAvailable:", "/proc/meminfo");
  return kibibytes > 0 ? kibibytes * 1024 : std::numeric_limits<std::uint64_t>::max();
}

/// Which file a descriptor is of.
std::string identity_of(int descriptor) {
  struct stat status {};

  return fstat(descriptor, &status) == 0 ? fmt::format("{}:{}", status.st_dev, status.st_ino) : "";
}

/// A page fault that finds no memory is SIGBUS, hence all is reserved, and counted before.
void require_room(std::size_t total, std::uint64_t limit) {
  const std::uint64_t room = limit > 0 ? limit : std::min(free_in_control_group(), free_on_machine());
  if (total > room) {
    base::fail<SystemError>("{} bytes of shared memory are needed on {}, but only {} may be taken", total,
                            base::host_name(), room);
  }
}

class ProcessSharer final : public MemorySharer {
 public:
  explicit ProcessSharer(std::uint64_t limit) : limit_(limit) {}

  std::shared_ptr<SharedMemory> share(const NodePlace& place, std::size_t part_bytes) override {
    const std::size_t total = part_bytes * static_cast<std::size_t>(place.ranks);
    const Descriptor memory = place.rank == 0 ? give(place, total) : take(place);
    std::shared_ptr<Mapping> mapping;
    std::string complaint;
    try {
      if (!memory)
        base::fail<SystemError>("rank {} of {} cannot open the memory of rank 0 on {}", place.rank,
                                place.ranks, base::host_name());
      mapping = std::make_shared<Mapping>(memory.number(), total);
      const auto begin = static_cast<off_t>(part_bytes) * place.rank;
      if (const int error = posix_fallocate(memory.number(), begin, static_cast<off_t>(part_bytes));
          error != 0)
        base::fail<SystemError>("cannot reserve {} of {} bytes of shared memory on {}: {}", part_bytes, total,
                                base::host_name(), base::errno_text(error));
    } catch (const SystemError& error) {
      complaint = error.what();
    }
    agree(place, complaint);
    probe(place, *mapping, part_bytes);
    mapping->populate();
    return mapping;
  }

 private:
  /// Rank 0: makes the memory and hands it out.
  Descriptor give(const NodePlace& place, std::size_t total) const {
    Descriptor memory;
    std::optional<DescriptorServer> server;
    std::string complaint;
    try {
      require_room(total, limit_);
      memory = Descriptor(memfd_create("tutti", MFD_CLOEXEC));
      if (!memory || ftruncate(memory.number(), static_cast<off_t>(total)) != 0)
        base::fail<SystemError>("cannot make {} bytes of shared memory on {}: {}", total, base::host_name(),
                                base::errno_text(errno));
      server.emplace();
    } catch (const SystemError& error) {
      complaint = error.what();
    }
    agree(place, complaint);
    place.gather(record_of(
        fmt::format("{} {} {} {}", server->name(), getpid(), memory.number(), identity_of(memory.number()))));
    int callers = 0;
    for (const Record& record : place.gather(Record{})) callers += record[0] == 'c' ? 1 : 0;
    server->serve(memory.number(), callers);
    agree(place, "");  // all have it: the descriptor may go
    return memory;
  }

  static Descriptor take(const NodePlace& place) {
    agree(place, "");
    std::istringstream offer{std::string(text_of(place.gather(Record{})[0]))};
    std::string name;
    std::string process;
    std::string number;
    std::string identity;
    offer >> name >> process >> number >> identity;
    const Descriptor connection = connect_to(name);
    place.gather(record_of(connection ? "connected" : ""));
    Descriptor memory = connection ? receive_from(connection) : Descriptor();
    if (!memory) {
      const std::string path = fmt::format("/proc/{}/fd/{}", process, number);
      memory = Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    }
    // In another PID namespace that would be a stranger's file.
    if (memory && identity_of(memory.number()) != identity) memory = Descriptor();
    agree(place, "");
    return memory;
  }

  /// Every rank must read what every other has written.
  static void probe(const NodePlace& place, const Mapping& mapping, std::size_t part_bytes) {
    const auto word = [&](Rank rank) {
      return reinterpret_cast<volatile std::uint64_t*>(mapping.data() +
                                                       part_bytes * static_cast<std::size_t>(rank));
    };
    std::uint64_t mine = 0;
    if (getrandom(&mine, sizeof mine, 0) != sizeof mine) mine = static_cast<std::uint64_t>(getpid());
    *word(place.rank) = mine;
    std::string complaint;
    const auto all = place.gather(record_of(fmt::format("{}", mine)));
    for (Rank rank = 0; rank < place.ranks; ++rank) {
      if (fmt::format("{}", *word(rank)) != text_of(all[static_cast<std::size_t>(rank)]))
        complaint = fmt::format("rank {} does not see what rank {} writes on {}", place.rank, rank,
                                base::host_name());
    }
    agree(place, complaint);
    *word(place.rank) = 0;
    place.gather(Record{});
  }

  std::uint64_t limit_;
};

class HeapMemory final : public SharedMemory {
 public:
  explicit HeapMemory(std::size_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)), std::free), bytes_(bytes) {
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, bytes);
  }

  std::byte* data() const override { return data_.get(); }

  std::size_t bytes() const override { return bytes_; }

 private:
  std::unique_ptr<std::byte, void (*)(void*)> data_;
  std::size_t bytes_;
};

/// Rank 0 owns; the others take a share of the ownership while it waits.
class ThreadSharer final : public MemorySharer {
 public:
  std::shared_ptr<SharedMemory> share(const NodePlace& place, std::size_t part_bytes) override {
    std::shared_ptr<SharedMemory> memory;
    if (place.rank == 0)
      memory = std::make_shared<HeapMemory>(part_bytes * static_cast<std::size_t>(place.ranks));
    Record record{};
    const auto* address = &memory;
    std::memcpy(record.data(), &address, sizeof address);
    const auto all = place.gather(record);
    if (place.rank != 0) {
      const std::shared_ptr<SharedMemory>* source = nullptr;
      std::memcpy(&source, all[0].data(), sizeof source);
      memory = *source;
    }
    place.gather(Record{});
    return memory;
  }
};

}  // namespace

std::unique_ptr<MemorySharer> make_process_sharer(std::uint64_t limit) {
  return std::make_unique<ProcessSharer>(limit);
}

std::unique_ptr<MemorySharer> make_thread_sharer() {
  return std::make_unique<ThreadSharer>();
}

PeerWatch::PeerWatch(const NodePlace& place) {
  std::error_code error;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  const auto all = place.gather(record_of(fmt::format("{} {}", getpid(), space)));
  for (Rank rank = 0; rank < place.ranks; ++rank) {
    const std::string text(text_of(all[static_cast<std::size_t>(rank)]));
    const int pid = std::atoi(text.c_str());
    if (pid == getpid() || space.empty() || text.substr(text.find(' ') + 1) != space) continue;
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0) continue;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    descriptors_.emplace_back(rank, descriptor);
  }
}

PeerWatch::~PeerWatch() {
  for (const auto& [rank, descriptor] : descriptors_) close(descriptor);
}

std::optional<Rank> PeerWatch::gone() const {
  for (const auto& [rank, descriptor] : descriptors_) {
    pollfd watched{descriptor, POLLIN, 0};
    if (poll(&watched, 1, 0) > 0 && (watched.revents & POLLIN) != 0) return rank;
  }
  return std::nullopt;
}

}  // namespace tutti::transport
