#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "schedule/schedule.hpp"
#include "tutti/types.hpp"

namespace tutti::engine {

/// One call of a collective, checked: what every engine is asked to carry out.
struct Request {
  schedule::Collective collective = schedule::Collective::allreduce;
  const void* input = nullptr;
  void* output = nullptr;
  /// Elements: of the whole buffer (allreduce, broadcast, reduce), of one block (reduce_scatter, allgather),
  /// of all blocks (allgatherv).
  std::size_t count = 0;
  DType type = DType::f32;
  Op op = Op::sum;
  Rank root = 0;
  double prescale = 1.0;
  std::span<const std::size_t> counts = {};  ///< allgatherv: elements of every rank; empty otherwise
  bool any_order = false;
  std::string_view algorithm = {};  ///< empty: chosen
  std::string_view name = {};       ///< of the tensor
  std::uint64_t context = 0;        ///< of a part: the signature of the whole, in a word
  std::uint64_t contributors = 0;   ///< what an average divides by; 0: the ranks

  bool in_place(Rank rank) const;

  std::size_t element_bytes() const { return size_of(type); }
};

/// Every order of additions gives the same bits: nothing is added, or integers are, or the order is the same
/// but for the operands' places.
bool order_is_free(const Request& request, Rank ranks);

/// What a turn of work has brought.
enum class Turn : std::uint8_t { idle, moved, done };

/// A collective on its way. Blocking and asynchronous calls drive the same object.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;
  /// Does what can be done without waiting. Not to be called again after `done` or an exception.
  virtual Turn advance() = 0;
  /// "allreduce #12 'conv1.weight' of 1024 f32: waits in round 2 for rank 3 (host, pid)": what it waits for.
  virtual std::string describe() const = 0;

  /// Called now and then while nothing moves, with the time since something last did: looks whether waiting
  /// makes sense. Throws if not.
  virtual void look_around(Seconds /*idle*/) {}

  /// Nothing can move for a while: sleeps until something may, no longer than `most`.
  virtual void sleep(Seconds most) { std::this_thread::sleep_for(most); }

  /// Somebody has stopped waiting for it: tell the other ranks why, as well as can be.
  virtual void abandon(const std::string& /*reason*/) noexcept {}
};

/// Something that carries out whole collectives.
class CollectiveEngine {
 public:
  CollectiveEngine() = default;
  CollectiveEngine(const CollectiveEngine&) = delete;
  CollectiveEngine& operator=(const CollectiveEngine&) = delete;
  virtual ~CollectiveEngine() = default;

  virtual std::string_view name() const = 0;
  virtual bool accepts(const Request& request) const = 0;
  /// Predicted time; the same on every rank.
  virtual Seconds predict(const Request& request) = 0;
  /// `sequence` numbers the operations of the communicator.
  virtual std::unique_ptr<Operation> start(const Request& request, std::uint32_t sequence) = 0;
  /// The schedule whose bits the result has; null where any order of additions may have happened.
  virtual const schedule::Algorithm* reference(const Request& request) = 0;
};

}  // namespace tutti::engine
