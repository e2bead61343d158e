#include "transport/mpi.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/wait.hpp"
#include "transport/mpi_call.hpp"

namespace tutti::transport {
namespace {

constexpr const char* claimed_name = "tutti session";

ThreadLevel level_from(int provided) {
  if (provided == MPI_THREAD_MULTIPLE) return ThreadLevel::multiple;
  if (provided == MPI_THREAD_SERIALIZED) return ThreadLevel::serialized;
  if (provided == MPI_THREAD_FUNNELED) return ThreadLevel::funneled;
  return ThreadLevel::single;
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  mpi_check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  std::string version(text.data(), static_cast<std::size_t>(length));
  version.resize(std::min(version.find('\n'), version.size()));
  std::replace(version.begin(), version.end(), '\t', ' ');
  while (!version.empty() && (version.back() == ' ' || version.back() == '\0')) version.pop_back();
  return version;
}

/// Median seconds of an exchange of so many messages of that size, all on their way at once.
double exchange(MPI_Comm comm, int peer, int bytes, std::size_t messages, std::size_t samples) {
  const std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  std::vector<std::byte> in(static_cast<std::size_t>(bytes) * messages);
  std::vector<MPI_Request> requests(2 * messages, MPI_REQUEST_NULL);
  std::vector<double> seconds;
  const base::SteadyClock clock;
  for (std::size_t i = 0; i < samples; ++i) {
    const Seconds begin = clock.now();
    for (std::size_t m = 0; m < messages; ++m) {
      mpi_check(MPI_Irecv(in.data() + m * out.size(), bytes, MPI_BYTE, peer, 0, comm, &requests[2 * m]),
                "MPI_Irecv");
      mpi_check(MPI_Isend(out.data(), bytes, MPI_BYTE, peer, 0, comm, &requests[2 * m + 1]), "MPI_Isend");
    }
    mpi_check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
    seconds.push_back((clock.now() - begin).count());
  }
  std::ranges::sort(seconds);
  return seconds[samples / 2];
}

/// Seconds of a short message, and for a byte of a long one. Long enough that what a network lets pass at
/// once does not decide; on a slow one, once is enough.
std::array<double, 2> wire_figures(MPI_Comm comm, int peer) {
  constexpr int message_bytes = 60 << 10;  // MPI libraries send such ones at once
  constexpr std::size_t messages = 9;
  exchange(comm, peer, 8, 1, 5);  // the first ones connect
  const double latency = exchange(comm, peer, 8, 1, 21);
  double once = exchange(comm, peer, message_bytes, messages, 1);
  mpi_check(MPI_Bcast(&once, 1, MPI_DOUBLE, 0, comm), "MPI_Bcast");
  const double seconds = once > 0.02 ? once : exchange(comm, peer, message_bytes, messages, 3);
  return {latency, std::max(seconds - latency, 1e-12) / static_cast<double>(message_bytes * messages)};
}

}  // namespace

std::string mpi_error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("MPI error {}", code);
  return {text.data(), static_cast<std::size_t>(length)};
}

void mpi_check(int code, std::string_view call) {
  if (code != MPI_SUCCESS) base::fail<Error>("{}: {}", call, mpi_error_text(code));
}

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
    mpi_check(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    initialized_here_ = true;
  } else {
    mpi_check(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  level_ = level_from(provided);
  mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  library_ = library_version();
  try {
    base::require_same_size(base::launch_hint(), size_, library_);
  } catch (...) {
    if (initialized_here_) MPI_Finalize();
    throw;  // the destructor does not run
  }
  claim();
  MPI_Comm node = MPI_COMM_NULL;
  mpi_check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  mpi_check(MPI_Comm_size(node, &ranks_here_), "MPI_Comm_size");
  node_ = rank_;
  mpi_check(MPI_Bcast(&node_, 1, MPI_INT, 0, node), "MPI_Bcast");
  base::ProcessorMask mask = base::usable_mask();
  mpi_check(
      MPI_Allreduce(MPI_IN_PLACE, mask.data(), static_cast<int>(mask.size()), MPI_UINT64_T, MPI_BOR, node),
      "MPI_Allreduce");
  processors_here_ = base::count_of(mask);
  MPI_Comm_free(&node);
}

/// One session at a time: their operations could not be told apart. The mark is on MPI_COMM_SELF, where other
/// copies of this library in the process see it too.
void MpiEnvironment::claim() {
  int main_thread = 0;
  MPI_Is_thread_main(&main_thread);
  base::require(level_ > ThreadLevel::funneled || main_thread != 0,
                "MPI was initialized at level {}: only the thread that did so may make a session",
                name_of(level_));
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  mpi_check(MPI_Comm_get_name(MPI_COMM_SELF, name.data(), &length), "MPI_Comm_get_name");
  base::require(std::string_view(name.data()) != claimed_name,
                "there is a session already in this process; pass it on, or let it go before the next one");
  name_before_ = name.data();
  mpi_check(MPI_Comm_set_name(MPI_COMM_SELF, claimed_name), "MPI_Comm_set_name");
}

MpiEnvironment::~MpiEnvironment() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Comm_set_name(MPI_COMM_SELF, name_before_.c_str());
  if (initialized_here_ && finalized == 0) MPI_Finalize();
}

bool MpiEnvironment::all_arrive(Seconds patience) const {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  const base::SteadyClock clock;
  const Seconds deadline = clock.now() + patience;
  for (;;) {
    int done = 0;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    if (clock.now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void MpiEnvironment::agree(const std::string& complaint) const {
  const int mine = complaint.empty() ? size_ : rank_;
  int first = 0;
  mpi_check(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (first == size_) return;
  int length = static_cast<int>(complaint.size());
  mpi_check(MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD), "MPI_Bcast");
  std::string text = complaint;
  text.resize(static_cast<std::size_t>(length));
  mpi_check(MPI_Bcast(text.data(), length, MPI_CHAR, first, MPI_COMM_WORLD), "MPI_Bcast");
  base::fail<base::AgreedError>("on rank {}: {}", first, text);
}

void MpiEnvironment::require_same(const std::string& what, const std::string& value) const {
  const std::string reference = broadcast(value);
  agree(reference == value ? ""
                           : fmt::format("{}: '{}' here, '{}' on rank 0; it must be the same on every rank",
                                         what, value, reference));
}

bool MpiEnvironment::all(bool mine) const {
  int value = mine ? 1 : 0;
  mpi_check(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  return value != 0;
}

std::string MpiEnvironment::broadcast(const std::string& mine) const {
  std::string text = mine;
  int length = static_cast<int>(text.size());
  mpi_check(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  text.resize(static_cast<std::size_t>(length));
  mpi_check(MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return text;
}

std::optional<WireTimes> MpiEnvironment::probe_wire() const {
  int other = node_ == 0 ? size_ : rank_;  // of the first node, which is rank 0's, or not
  mpi_check(MPI_Allreduce(MPI_IN_PLACE, &other, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (other == size_) return {};
  std::array<double, 2> found{};
  MPI_Comm wire = MPI_COMM_NULL;
  mpi_check(MPI_Comm_split(MPI_COMM_WORLD, rank_ == 0 || rank_ == other ? 0 : MPI_UNDEFINED, rank_, &wire),
            "MPI_Comm_split");
  if (wire != MPI_COMM_NULL) {
    found = wire_figures(wire, rank_ == 0 ? 1 : 0);
    MPI_Comm_free(&wire);
  }
  mpi_check(MPI_Bcast(found.data(), 2, MPI_DOUBLE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return WireTimes{Seconds(found[0]), found[1]};
}

void MpiEnvironment::poke() {
  int flag = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

std::unique_ptr<Transport> MpiEnvironment::world() const {
  MPI_Comm duplicate = MPI_COMM_NULL;
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate), "MPI_Comm_dup");
  std::uint64_t identity =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  mpi_check(MPI_Bcast(&identity, 1, MPI_UINT64_T, 0, duplicate), "MPI_Bcast");
  return make_mpi_transport(duplicate, identity);
}

void MpiEnvironment::abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

}  // namespace tutti::transport
