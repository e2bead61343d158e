#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/node/chunks.hpp"
#include "engine/node/group.hpp"
#include "engine/request.hpp"

namespace tutti::engine::node {

/// How much a rank adds itself, and from which size on it pays to do otherwise. Part of what all ranks agree
/// on.
struct Limits {
  std::size_t slot_bytes = 2048;               ///< contributions up to here go beside the flag
  std::size_t flat_bytes = 16384;              ///< up to here every rank adds everything
  std::size_t stream_bytes = 8 << 20;          ///< buffers from here on are written past the caches
  std::size_t stream_bytes_of_many = 2 << 20;  ///< the same for more than flat_ranks
  Rank flat_ranks = 2;                         ///< up to so many ranks add everything whatever the size

  bool streams(std::size_t bytes, Rank ranks) const {
    return bytes >= (ranks > flat_ranks ? stream_bytes_of_many : stream_bytes);
  }
};

/// A collective among ranks that see each other's memory. In canonical order; no call of MPI.
class NodeOperation final : public Operation {
 public:
  /// All must outlive the operation. `sequence` numbers the operations of the communicator, for reports.
  NodeOperation(Group& group, const Limits& limits, const Request& request, std::uint32_t sequence,
                const transport::Signature& signature);
  ~NodeOperation() override;

  Turn advance() override;
  std::string describe() const override;
  void look_around(Seconds idle) override;
  void abandon(const std::string& reason) noexcept override;
  void sleep(Seconds most) override;

 private:
  enum class Phase : std::uint8_t { queued, arriving, through_cells, in_place, leaving, done };

  bool small() const { return chunks_.total_bytes() <= limits_.slot_bytes && chunks_.count() <= 1; }

  bool begin();
  void enter();
  void arrive();
  bool all_arrived();
  void find_words();
  bool all_in_arena() const;
  void run_in_slots();
  void run_in_place();
  void note_staged();
  Word word_of(Rank rank, std::size_t which) const;
  std::byte* input_of(Rank rank);
  std::byte* output_of(Rank rank);
  void add_slice();
  bool advance_cells();
  bool stage_next();
  /// Whether all ranks have brought this counter so far; `seen` keeps what is known of them.
  bool reached(Beat Control::*beat, std::vector<std::uint64_t>& seen, std::uint64_t value);
  bool reached(Rank rank, const std::atomic<std::uint64_t>& value, std::uint64_t wanted);
  bool blocked(Rank rank, const std::atomic<std::uint64_t>& value, std::uint64_t wanted);
  void publish(Beat Control::*beat, std::uint64_t value);
  void finish();
  [[noreturn]] void mismatch(Rank rank);
  [[noreturn]] void fail(transport::Notice::Kind kind, const std::string& text);
  void say_failed(transport::Notice::Kind kind, const std::string& text) noexcept;
  std::string label() const;

  std::uint64_t mark() const { return number_ + 1; }

  bool waits_for_its_turn() const { return phase_ == Phase::queued && group_.current != number_; }

  Group& group_;
  const Limits& limits_;
  std::vector<std::size_t> counts_;
  Request request_;
  const std::uint32_t sequence_;
  const transport::Signature signature_;
  std::uint64_t check_ = 0;  ///< the signature in one word
  std::uint64_t number_;     ///< of the operation within the group
  Chunks chunks_;
  Phase phase_ = Phase::queued;
  bool entered_ = false;
  bool given_up_ = false;
  Rank arrived_ = 0;    ///< ranks below this one have arrived
  Rank waits_for_ = 0;  ///< a rank that is not where it should be, and the counter that will tell
  const std::atomic<std::uint64_t>* blocked_on_ = nullptr;
  std::uint64_t blocked_until_ = 0;
  std::uint64_t base_ = 0;
  std::uint64_t staged_ = 0;
  std::uint64_t reduced_ = 0;
  std::uint64_t gathered_ = 0;
  Word input_word_ = 0;
  Word output_word_ = 0;
};

}  // namespace tutti::engine::node
