#include "transport/mpi.hpp"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/slots.hpp"

namespace tutti::transport {
namespace {

/// MPI takes int counts; larger messages go in pieces of this size, in order, under the same tag.
constexpr std::size_t piece_bytes = std::size_t{1} << 30;

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("MPI error {}", code);
  return {text.data(), static_cast<std::size_t>(length)};
}

void check(int code, std::string_view call) {
  if (code != MPI_SUCCESS) base::fail<Error>("{}: {}", call, error_text(code));
}

/// "host, pid" of every rank, gathered once.
std::vector<std::string> gather_places(MPI_Comm comm, Rank size) {
  constexpr std::size_t width = 96;
  std::array<char, width> mine{};
  const std::string text = fmt::format("{}, pid {}", base::host_name().substr(0, 64), base::process_id());
  std::memcpy(mine.data(), text.data(), std::min(text.size(), width - 1));
  std::vector<char> all(width * static_cast<std::size_t>(size));
  check(MPI_Allgather(mine.data(), width, MPI_CHAR, all.data(), width, MPI_CHAR, comm), "MPI_Allgather");
  std::vector<std::string> places;
  for (Rank rank = 0; rank < size; ++rank)
    places.emplace_back(all.data() + width * static_cast<std::size_t>(rank));
  return places;
}

struct Posted {
  MPI_Request first = MPI_REQUEST_NULL;
  std::vector<MPI_Request> more;
  std::size_t last_bytes = 0;  ///< of the last piece of a receive; 0 for a send
  Rank peer = -1;
  bool is_receive = false;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm comm) : comm_(comm) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    int* upper = nullptr;
    int found = 0;
    check(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &upper, &found), "MPI_Comm_get_attr");
    const std::uint32_t tags = found != 0 ? static_cast<std::uint32_t>(*upper) + 1U : 32768U;
    sequences_ = tags / (segment_window * strand_limit);
    base::require(sequences_ > sequence_window, "this MPI library offers {} tags; tutti needs {}", tags,
                  (sequence_window + 1) * segment_window * strand_limit);
    places_ = gather_places(comm_, size_);
  }

  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  ~MpiTransport() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&comm_);
  }

  std::string_view name() const override { return "mpi"; }

  Rank rank() const override { return rank_; }

  Rank size() const override { return size_; }

  Ticket send(Rank peer, Tag tag, const void* data, std::size_t bytes) override {
    Posted posted{.peer = peer};
    for_each_piece(bytes, posted, [&](std::size_t offset, int size, MPI_Request& request) {
      const int code = MPI_Isend(static_cast<const char*>(data) + offset, size, MPI_BYTE, peer, pack(tag),
                                 comm_, &request);
      if (code != MPI_SUCCESS) lost(peer, "MPI_Isend", code);
    });
    return slots_.take(std::move(posted));
  }

  Ticket receive(Rank peer, Tag tag, void* data, std::size_t bytes) override {
    Posted posted{.peer = peer, .is_receive = true};
    for_each_piece(bytes, posted, [&](std::size_t offset, int size, MPI_Request& request) {
      const int code =
          MPI_Irecv(static_cast<char*>(data) + offset, size, MPI_BYTE, peer, pack(tag), comm_, &request);
      if (code != MPI_SUCCESS) lost(peer, "MPI_Irecv", code);
      posted.last_bytes = static_cast<std::size_t>(size);
    });
    return slots_.take(std::move(posted));
  }

  bool test(Ticket ticket) override {
    Posted& posted = slots_[ticket];
    if (!finished(posted.first, posted.more.empty() ? posted.last_bytes : piece_bytes, posted)) return false;
    while (!posted.more.empty()) {
      // Pieces end in order; look at the newest first, so that one test tells most.
      if (!finished(posted.more.back(), posted.last_bytes, posted)) return false;
      posted.more.pop_back();
      posted.last_bytes = piece_bytes;
    }
    slots_.release(ticket);
    return true;
  }

  void cancel(Ticket ticket) noexcept override {
    Posted& posted = slots_[ticket];
    posted.more.push_back(posted.first);
    for (MPI_Request& request : posted.more) {
      if (request == MPI_REQUEST_NULL) continue;
      if (posted.is_receive) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
    slots_.release(ticket);
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, color, key, &part), "MPI_Comm_split");
    return std::make_unique<MpiTransport>(part);
  }

  std::string describe(Rank peer) const override {
    return fmt::format("rank {} ({})", peer, places_[static_cast<std::size_t>(peer)]);
  }

 private:
  template <class Post>
  void for_each_piece(std::size_t bytes, Posted& posted, const Post& post) {
    std::size_t offset = 0;
    while (offset < bytes) {
      const std::size_t size = std::min(bytes - offset, piece_bytes);
      if (offset > 0) posted.more.push_back(MPI_REQUEST_NULL);
      post(offset, static_cast<int>(size), offset == 0 ? posted.first : posted.more.back());
      offset += size;
    }
  }

  int pack(Tag tag) const {
    const std::uint32_t sequence = tag.sequence % sequences_;
    return static_cast<int>((sequence * segment_window + tag.segment % segment_window) * strand_limit +
                            tag.strand);
  }

  bool finished(MPI_Request& request, std::size_t expected, const Posted& posted) {
    if (request == MPI_REQUEST_NULL) return true;
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&request, &done, &status);
    if (code != MPI_SUCCESS) failed_test(posted.peer, expected, code);
    if (done == 0) return false;
    if (posted.is_receive) {
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      if (std::cmp_not_equal(bytes, expected)) {
        base::fail<MismatchError>(
            "{} sent {} bytes where rank {} expected {}: the ranks called different operations",
            describe(posted.peer), bytes, rank_, expected);
      }
    }
    return true;
  }

  [[noreturn]] void failed_test(Rank peer, std::size_t expected, int code) const {
    int error_class = 0;
    MPI_Error_class(code, &error_class);
    if (error_class == MPI_ERR_TRUNCATE) {
      base::fail<MismatchError>(
          "{} sent more bytes than the {} that rank {} expected: the ranks called different operations",
          describe(peer), expected, rank_);
    }
    lost(peer, "MPI_Test", code);
  }

  [[noreturn]] void lost(Rank peer, std::string_view call, int code) const {
    base::fail<PeerLostError>("rank {}: {} with {} failed: {}", rank_, call, describe(peer),
                              error_text(code));
  }

  MPI_Comm comm_;
  Rank rank_ = 0;
  Rank size_ = 1;
  std::uint32_t sequences_ = 0;
  std::vector<std::string> places_;
  base::Slots<Posted> slots_;
};

ThreadLevel level_from(int provided) {
  if (provided == MPI_THREAD_MULTIPLE) return ThreadLevel::multiple;
  if (provided == MPI_THREAD_SERIALIZED) return ThreadLevel::serialized;
  if (provided == MPI_THREAD_FUNNELED) return ThreadLevel::funneled;
  return ThreadLevel::single;
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  std::string version(text.data(), static_cast<std::size_t>(length));
  version.resize(std::min(version.find('\n'), version.size()));
  std::replace(version.begin(), version.end(), '\t', ' ');
  while (!version.empty() && (version.back() == ' ' || version.back() == '\0')) version.pop_back();
  return version;
}

}  // namespace

std::string_view name_of(ThreadLevel level) noexcept {
  constexpr std::array<std::string_view, 4> names{"single", "funneled", "serialized", "multiple"};
  return names[static_cast<std::size_t>(level)];
}

MpiEnvironment::MpiEnvironment(int* argc, char*** argv) {
  int flag = 0;
  MPI_Finalized(&flag);
  base::require(flag == 0,
                "MPI was finalized before this session: it cannot be started again in this process");
  MPI_Initialized(&flag);
  int provided = MPI_THREAD_SINGLE;
  if (flag == 0) {
    check(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    initialized_here_ = true;
  } else {
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  level_ = level_from(provided);
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  library_ = library_version();
  try {
    base::require_same_size(base::launch_hint(), size_, library_);
  } catch (...) {
    if (initialized_here_) MPI_Finalize();
    throw;
  }
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
        "MPI_Comm_split_type");
  check(MPI_Comm_size(node, &ranks_here_), "MPI_Comm_size");
  MPI_Comm_free(&node);
}

MpiEnvironment::~MpiEnvironment() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (initialized_here_ && finalized == 0) MPI_Finalize();
}

bool MpiEnvironment::on_main_thread() {
  int flag = 0;
  MPI_Is_thread_main(&flag);
  return flag != 0;
}

void MpiEnvironment::agree(const std::string& complaint) const {
  const int mine = complaint.empty() ? size_ : rank_;
  int first = 0;
  check(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (first == size_) return;
  int length = static_cast<int>(complaint.size());
  check(MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD), "MPI_Bcast");
  std::string text = complaint;
  text.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(text.data(), length, MPI_CHAR, first, MPI_COMM_WORLD), "MPI_Bcast");
  base::fail<base::AgreedError>("on rank {}: {}", first, text);
}

void MpiEnvironment::require_same(const std::string& what, const std::string& value) const {
  std::string reference = value;
  int length = static_cast<int>(reference.size());
  check(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  reference.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(reference.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
  agree(reference == value ? ""
                           : fmt::format("{}: '{}' here, '{}' on rank 0; it must be the same on every rank",
                                         what, value, reference));
}

std::unique_ptr<Transport> MpiEnvironment::world() const {
  MPI_Comm duplicate = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate), "MPI_Comm_dup");
  return std::make_unique<MpiTransport>(duplicate);
}

void MpiEnvironment::abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

}  // namespace tutti::transport
