#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/types.hpp"

/// Memory that the ranks of one node see together: what everything else between them is built on. It has no
/// name anywhere, so nothing can be left behind.
namespace tutti::transport {

/// A mapping; every rank has it at an address of its own, or, as threads of one process, at the same.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  virtual ~SharedMemory() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t bytes() const = 0;
};

/// What a rank tells the others of its node while they set memory up.
using Record = std::array<char, 512>;
/// Collective over the ranks of the node, blocking: the records of all, in rank order.
using Gather = std::function<std::vector<Record>(const Record&)>;

/// A rank's place in its node, and how it talks to the others until they share memory.
struct NodePlace {
  Rank rank = 0;
  Rank ranks = 1;
  Gather gather;
};

/// How ranks come to see the same memory.
class MemorySharer {
 public:
  MemorySharer() = default;
  MemorySharer(const MemorySharer&) = delete;
  MemorySharer& operator=(const MemorySharer&) = delete;
  virtual ~MemorySharer() = default;
  /// Collective. `ranks` parts of `part_bytes` each (a multiple of the page size), zeroed and reserved, each
  /// by the rank whose it is. Throws SystemError, the same on every rank, that names the size that is
  /// missing.
  virtual std::shared_ptr<SharedMemory> share(const NodePlace& place, std::size_t part_bytes) = 0;
};

/// Between processes: a memfd, whose descriptor goes over a socket that only this user's processes are
/// answered on, or through /proc where that fails. `limit`: the most bytes that all ranks of the node
/// together may take; 0: what the machine and its control group have free.
std::unique_ptr<MemorySharer> make_process_sharer(std::uint64_t limit);
/// Between threads of this process, for tests.
std::unique_ptr<MemorySharer> make_thread_sharer();

/// Tells when a process of the node has ended.
class PeerWatch {
 public:
  /// Collective. Watches no one who cannot be watched (threads, processes of another PID namespace).
  explicit PeerWatch(const NodePlace& place);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();
  /// A rank that is gone.
  std::optional<Rank> gone() const;

 private:
  std::vector<std::pair<Rank, int>> descriptors_;
};

}  // namespace tutti::transport
