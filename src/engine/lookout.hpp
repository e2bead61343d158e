#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/node/group.hpp"
#include "engine/signature.hpp"
#include "transport/transport.hpp"

namespace tutti::engine {

/// What the ranks of a communicator tell each other beside their operations: that one has failed, and what
/// they are in. The first failure that is told or heard ends every operation of this communicator on this
/// rank, whichever of them happens to hear it: what the others wait for may never come. For the holder of
/// the progress token.
class Lookout {
 public:
  /// Both must outlive it.
  Lookout(transport::Transport& transport, const CallLog& calls) : transport_(transport), calls_(calls) {}

  /// Where ranks share memory, trouble is told, and looked for, there too.
  void tell_also(node::Group* node) { node_ = node; }

  transport::Transport& transport() const { return transport_; }

  const CallLog& calls() const { return calls_; }

  /// For an operation that nothing moves: throws if it cannot end, since something has failed or a rank is in
  /// another operation. Asks the others what they are in, now and then. `idle`: since something moved.
  void look(std::uint32_t sequence, Seconds idle, Seconds& next_inquiry,
            const std::function<std::string()>& describe);
  /// Throws if an operation of this communicator has failed.
  void check(const std::function<std::string()>& describe) const;
  /// Tells all ranks, and throws what it says.
  [[noreturn]] void end(transport::Notice::Kind kind, std::uint32_t sequence, const std::string& text);
  /// Tells all ranks why an operation ends.
  void tell(transport::Notice::Kind kind, std::uint32_t sequence, const std::string& text) noexcept;

  static constexpr Seconds first_inquiry{0.2};

 private:
  void answer(const transport::Notice& inquiry);

  transport::Transport& transport_;
  const CallLog& calls_;
  node::Group* node_ = nullptr;
  std::optional<transport::Notice> failure_;  ///< its text says who has found it
};

/// The kind of trouble that an exception tells of.
transport::Notice::Kind kind_of(const std::exception& error);

}  // namespace tutti::engine
