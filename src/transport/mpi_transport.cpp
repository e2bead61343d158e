#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/random.hpp"
#include "base/slots.hpp"
#include "transport/mpi_call.hpp"

namespace tutti::transport {
namespace {

/// MPI takes int counts; larger messages go in pieces of this size, in order, under the same tag.
constexpr std::size_t piece_bytes = std::size_t{1} << 30;

/// What goes before the payload of the first message under a tag. A receive of any other size than the
/// message has can damage memory in some MPI libraries, so this comes, and is looked at, before the payload
/// is received.
struct Envelope {
  Signature signature;
  std::uint64_t bytes = 0;
  std::uint64_t reserved = 0;
};

/// Payloads up to this size travel in the same message as the envelope.
constexpr std::size_t inline_bytes = (16 << 10) - sizeof(Envelope);

/// An envelope and a small payload.
struct Opening {
  Envelope envelope;
  std::array<std::byte, inline_bytes> payload;
};

struct NoticeMessage {
  Notice::Kind kind = Notice::Kind::mismatch;
  std::uint32_t sequence = 0;
  std::uint64_t identity = 0;  ///< of the communicator: MPI may give a new one the number of an old one
  Signature signature;
  std::array<char, 2000> text{};
};

using Parked = std::vector<std::shared_ptr<const void>>;

int release_parked(MPI_Comm /*comm*/, int /*key*/, void* parked, void* /*extra*/) {
  const std::unique_ptr<Parked> owned(static_cast<Parked*>(parked));
  return MPI_SUCCESS;
}

/// Attributes of MPI_COMM_SELF are deleted first of all by MPI_Finalize. Each has its own key.
void keep_until_finalize(Parked parked) noexcept {
  int key = MPI_KEYVAL_INVALID;
  if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release_parked, &key, nullptr) != MPI_SUCCESS) return;
  auto owned = std::make_unique<Parked>(std::move(parked));
  if (MPI_Comm_set_attr(MPI_COMM_SELF, key, owned.get()) == MPI_SUCCESS)
    static_cast<void>(owned.release());  // NOLINT(bugprone-unused-return-value)
  MPI_Comm_free_keyval(&key);
}

/// "host, pid" of every rank, gathered once.
std::vector<std::string> gather_places(MPI_Comm comm, Rank size) {
  constexpr std::size_t width = 96;
  std::array<char, width> mine{};
  const std::string text = fmt::format("{}, pid {}", base::host_name().substr(0, 64), base::process_id());
  std::memcpy(mine.data(), text.data(), std::min(text.size(), width - 1));
  std::vector<char> all(width * static_cast<std::size_t>(size));
  mpi_check(MPI_Allgather(mine.data(), width, MPI_CHAR, all.data(), width, MPI_CHAR, comm), "MPI_Allgather");
  std::vector<std::string> places;
  for (Rank rank = 0; rank < size; ++rank)
    places.emplace_back(all.data() + width * static_cast<std::size_t>(rank));
  return places;
}

/// A message on its way: its opening first, then its payload in pieces.
struct Posted {
  Rank peer = -1;
  int tag = 0;
  bool is_receive = false;
  bool queued = false;  ///< a receive that waits until an opening before it has been looked at
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::unique_ptr<Opening> opening;  ///< still to be looked at, if a receive; to be kept, if a send
  MPI_Request envelope = MPI_REQUEST_NULL;
  MPI_Request first = MPI_REQUEST_NULL;
  std::vector<MPI_Request> more;
  std::vector<Ticket> behind;  ///< receives queued behind this opening
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm comm, std::uint64_t identity) : comm_(comm), identity_(identity) {
    mpi_check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    mpi_check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    int* upper = nullptr;
    int found = 0;
    mpi_check(MPI_Comm_get_attr(comm_, MPI_TAG_UB, static_cast<void*>(&upper), &found), "MPI_Comm_get_attr");
    const std::uint32_t tags = found != 0 ? static_cast<std::uint32_t>(*upper) : 32767U;
    sequences_ = tags / (segment_window * strand_limit);
    notice_tag_ = static_cast<int>(tags);
    base::require(sequences_ > sequence_window, "this MPI library offers {} tags; tutti needs {}", tags,
                  (sequence_window + 1) * segment_window * strand_limit + 1);
    places_ = gather_places(comm_, size_);
    native_ = make_native_collectives(comm_);
  }

  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  ~MpiTransport() override {
    // What was cancelled may still be on its way, and would be received in the next communicator that MPI
    // gives the same number.
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    forget_sent();
    for (MPI_Request& request : asked_) MPI_Request_free(&request);
    if (question_) park(question_);
    if (!broken_) MPI_Comm_free(&comm_);
    // MPI may still write to what was given up, until it is finalized.
    if (auto parked = take_parked(); !parked.empty()) keep_until_finalize(std::move(parked));
  }

  std::string_view name() const override { return "mpi"; }

  // MPI keeps the messages of collectives apart from those that are sent on the same communicator.
  NativeCollectives* native() override { return native_.get(); }

  Rank rank() const override { return rank_; }

  Rank size() const override { return size_; }

  Ticket send(Rank peer, Tag tag, const Signature* opening, const void* data, std::size_t bytes) override {
    note_sent(bytes);
    // MPI only reads what it sends; one type for both directions.
    auto* from = static_cast<std::byte*>(const_cast<void*>(data));
    Posted posted{.peer = peer, .tag = pack(tag), .data = from, .bytes = bytes};
    if (opening != nullptr) {
      posted.opening = take_opening();
      posted.opening->envelope = {*opening, bytes, 0};
      const bool inlined = bytes <= inline_bytes;
      if (inlined && bytes > 0) std::memcpy(posted.opening->payload.data(), data, bytes);
      const std::size_t size = sizeof(Envelope) + (inlined ? bytes : 0);
      start(posted, posted.opening.get(), size, posted.envelope);
      if (inlined) return slots_.take(std::move(posted));
    }
    start_payload(posted);
    return slots_.take(std::move(posted));
  }

  Ticket receive(Rank peer, Tag tag, const Signature* opening, void* data, std::size_t bytes) override {
    Posted posted{.peer = peer,
                  .tag = pack(tag),
                  .is_receive = true,
                  .data = static_cast<std::byte*>(data),
                  .bytes = bytes};
    if (opening != nullptr) {
      posted.opening = take_opening();
      posted.opening->envelope = {*opening, bytes, 0};
      auto arriving = take_opening();
      start(posted, arriving.get(), sizeof(Opening), posted.envelope);
      const Ticket ticket = slots_.take(std::move(posted));
      arriving_.push_back({ticket, std::move(arriving)});
      return ticket;
    }
    Posted* before = opening_before(posted);
    posted.queued = before != nullptr;
    if (before == nullptr) start_payload(posted);
    const Ticket ticket = slots_.take(std::move(posted));
    // Taking a slot can move the others.
    if (Posted* again = before == nullptr ? nullptr : opening_before(slots_[ticket]); again != nullptr)
      again->behind.push_back(ticket);
    return ticket;
  }

  bool test(Ticket ticket) override {
    if (slots_[ticket].queued) return false;
    if (slots_[ticket].opening && !finish_opening(ticket)) return false;
    Posted& posted = slots_[ticket];
    const std::size_t last = posted.more.empty() ? posted.bytes : (posted.bytes - 1) % piece_bytes + 1;
    if (!finished(posted.first, posted.more.empty() ? last : piece_bytes, posted)) return false;
    while (!posted.more.empty()) {
      // Pieces end in order; look at the newest first, so that one test tells most.
      const bool newest = posted.more.size() == (posted.bytes - 1) / piece_bytes;
      if (!finished(posted.more.back(), newest ? last : piece_bytes, posted)) return false;
      posted.more.pop_back();
    }
    slots_.release(ticket);
    return true;
  }

  bool cancel(Ticket ticket) noexcept override {
    Posted& posted = slots_[ticket];
    bool free = true;
    broken_ = true;
    posted.more.push_back(posted.first);
    posted.more.push_back(posted.envelope);
    for (MPI_Request& request : posted.more) {
      if (request == MPI_REQUEST_NULL) continue;
      if (posted.is_receive) MPI_Cancel(&request);
      if (ended(request, posted.is_receive)) continue;
      MPI_Request_free(&request);
      free = false;
    }
    if (posted.opening) park(std::shared_ptr<Opening>(std::move(posted.opening)));
    const auto arriving = find_arriving(ticket);
    if (arriving != arriving_.end()) {
      park(std::shared_ptr<Opening>(std::move(arriving->second)));
      arriving_.erase(arriving);
    }
    slots_.release(ticket);
    return free;
  }

  void tell_all(const Notice& notice) noexcept override {
    const bool asks = notice.kind == Notice::Kind::inquiry;
    broken_ = broken_ || !asks;
    forget_sent();
    // Whoever has not taken the last question needs no other.
    if (asks && !asked_.empty()) return;
    auto message = std::make_shared<NoticeMessage>();
    message->kind = notice.kind;
    message->sequence = notice.sequence;
    message->identity = identity_;
    message->signature = notice.signature;
    notice.text.copy(message->text.data(), message->text.size() - 1);
    const std::size_t bytes = asks ? offsetof(NoticeMessage, text) : sizeof *message;
    for (Rank peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      if (MPI_Isend(message.get(), static_cast<int>(bytes), MPI_BYTE, peer, notice_tag_, comm_, &request) !=
          MPI_SUCCESS)
        continue;
      if (asks)
        asked_.push_back(request);
      else
        MPI_Request_free(&request);
    }
    if (asks)
      question_ = std::move(message);
    else
      park(message);
  }

  std::optional<Notice> heard() override {
    int flag = 0;
    MPI_Status status;
    mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, notice_tag_, comm_, &flag, &status), "MPI_Iprobe");
    if (flag == 0) return std::nullopt;
    NoticeMessage message;
    mpi_check(MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, notice_tag_, comm_,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    if (message.identity != identity_) return heard();
    return Notice{message.kind, status.MPI_SOURCE, message.sequence, message.signature, message.text.data()};
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    MPI_Comm part = MPI_COMM_NULL;
    mpi_check(MPI_Comm_split(comm_, color, key, &part), "MPI_Comm_split");
    const std::uint64_t identity =
        base::mix(base::mix(identity_ + ++splits_) + static_cast<std::uint64_t>(color));
    return std::make_unique<MpiTransport>(part, identity);
  }

  std::string describe(Rank peer) const override {
    return fmt::format("rank {} ({})", peer, places_[static_cast<std::size_t>(peer)]);
  }

 private:
  using Arriving = std::pair<Ticket, std::unique_ptr<Opening>>;

  std::unique_ptr<Opening> take_opening() {
    // Whoever takes one writes what is sent, or compared.
    if (spare_.empty()) return std::make_unique_for_overwrite<Opening>();
    auto opening = std::move(spare_.back());
    spare_.pop_back();
    return opening;
  }

  /// A peer that has not failed may be reading what this rank sends, straight from the caller's buffer, which
  /// goes when the error is out: so sends get some time to end, all together no more than patience_.
  bool ended(MPI_Request& request, bool is_receive) noexcept {
    for (;;) {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return true;
      if (is_receive || patience_ == std::chrono::milliseconds(0)) return false;
      patience_ -= std::chrono::milliseconds(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void start(const Posted& posted, void* data, std::size_t bytes, MPI_Request& request) {
    const int size = static_cast<int>(bytes);
    const int code = posted.is_receive
                         ? MPI_Irecv(data, size, MPI_BYTE, posted.peer, posted.tag, comm_, &request)
                         : MPI_Isend(data, size, MPI_BYTE, posted.peer, posted.tag, comm_, &request);
    if (code != MPI_SUCCESS) lost(posted.peer, posted.is_receive ? "MPI_Irecv" : "MPI_Isend", code);
  }

  void start_payload(Posted& posted) {
    for (std::size_t offset = 0; offset < posted.bytes; offset += piece_bytes) {
      if (offset > 0) posted.more.push_back(MPI_REQUEST_NULL);
      start(posted, posted.data + offset, std::min(posted.bytes - offset, piece_bytes),
            offset == 0 ? posted.first : posted.more.back());
    }
  }

  std::vector<Arriving>::iterator find_arriving(Ticket ticket) {
    return std::find_if(arriving_.begin(), arriving_.end(),
                        [&](const Arriving& entry) { return entry.first == ticket; });
  }

  Posted* opening_before(const Posted& posted) {
    for (const auto& [ticket, opening] : arriving_) {
      Posted& other = slots_[ticket];
      if (other.peer == posted.peer && other.tag == posted.tag) return &other;
    }
    return nullptr;
  }

  /// True once the opening is through: then the payload is here, or its receive is posted, and what was
  /// queued behind it too.
  bool finish_opening(Ticket ticket) {
    Posted& posted = slots_[ticket];
    MPI_Status status;
    if (!tested(posted.envelope, posted, status)) return false;
    if (posted.is_receive) {
      const auto entry = find_arriving(ticket);
      std::unique_ptr<Opening> arrived = std::move(entry->second);
      arriving_.erase(entry);
      accept(posted, *arrived, status);
      spare_.push_back(std::move(arrived));
      for (const Ticket next : std::exchange(posted.behind, {})) {
        slots_[next].queued = false;
        start_payload(slots_[next]);
      }
    }
    spare_.push_back(std::move(posted.opening));
    return true;
  }

  void accept(Posted& posted, const Opening& arrived, const MPI_Status& status) {
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    const Envelope& found = arrived.envelope;
    const Envelope& expected = posted.opening->envelope;
    if (std::cmp_less(size, sizeof(Envelope)) || found.signature != expected.signature) {
      throw ForeignOperation(posted.peer, found.signature,
                             fmt::format("{} called another operation", describe(posted.peer)));
    }
    if (found.bytes != expected.bytes) mismatch(posted.peer, found.bytes, expected.bytes);
    if (posted.bytes > inline_bytes) {
      start_payload(posted);
    } else if (posted.bytes > 0) {
      std::memcpy(posted.data, arrived.payload.data(), posted.bytes);
    }
  }

  /// The last question, once everybody has taken it.
  void forget_sent() noexcept {
    std::erase_if(asked_, [](MPI_Request& request) {
      int done = 0;
      return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
    if (asked_.empty()) question_.reset();
  }

  int pack(Tag tag) const {
    const std::uint32_t sequence = tag.sequence % sequences_;
    return static_cast<int>((sequence * segment_window + tag.segment % segment_window) * strand_limit +
                            tag.strand);
  }

  bool tested(MPI_Request& request, const Posted& posted, MPI_Status& status) {
    int done = 0;
    const int code = MPI_Test(&request, &done, &status);
    if (code == MPI_SUCCESS) return done != 0;
    int error_class = 0;
    MPI_Error_class(code, &error_class);
    if (error_class == MPI_ERR_TRUNCATE) mismatch(posted.peer, "more", posted.bytes);
    lost(posted.peer, "MPI_Test", code);
  }

  bool finished(MPI_Request& request, std::size_t expected, const Posted& posted) {
    if (request == MPI_REQUEST_NULL) return true;
    MPI_Status status;
    if (!tested(request, posted, status)) return false;
    if (posted.is_receive) {
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      if (std::cmp_not_equal(bytes, expected)) mismatch(posted.peer, bytes, expected);
    }
    return true;
  }

  template <class Found>
  [[noreturn]] void mismatch(Rank peer, const Found& found, std::size_t expected) const {
    base::fail<MismatchError>(
        "{} sent {} bytes where rank {} expected {}: the ranks called different operations", describe(peer),
        found, rank_, expected);
  }

  [[noreturn]] void lost(Rank peer, std::string_view call, int code) const {
    base::fail<PeerLostError>("rank {}: {} with {} failed: {}", rank_, call, describe(peer),
                              mpi_error_text(code));
  }

  MPI_Comm comm_;
  std::uint64_t identity_;  ///< the same on all its ranks, and no other's
  std::uint64_t splits_ = 0;
  Rank rank_ = 0;
  Rank size_ = 1;
  std::uint32_t sequences_ = 0;
  int notice_tag_ = 0;
  std::chrono::milliseconds patience_{1000};
  bool broken_ = false;                      ///< an operation has failed: messages of it may be left
  std::shared_ptr<NoticeMessage> question_;  ///< on its way
  std::vector<MPI_Request> asked_;
  std::vector<std::string> places_;
  std::unique_ptr<NativeCollectives> native_;
  base::Slots<Posted> slots_;
  std::vector<Arriving> arriving_;  ///< openings that have not been looked at, oldest first
  std::vector<std::unique_ptr<Opening>> spare_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, std::uint64_t identity) {
  return std::make_unique<MpiTransport>(comm, identity);
}

}  // namespace tutti::transport
