#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/lookout.hpp"
#include "engine/request.hpp"
#include "exchange/coded.hpp"

namespace tutti::exchange {

/// Bytes of several messages that outlive the operation if they must.
struct Payloads {
  std::vector<std::vector<std::byte>> of;
};

/// What all operations of this layer share: they tell the other ranks if they fail, and look around while
/// they wait.
class ExchangeOperation : public engine::Operation {
 public:
  ExchangeOperation(engine::Lookout& lookout, std::uint32_t sequence, std::string label);

  engine::Turn advance() final;
  void look_around(Seconds idle) override;
  void abandon(const std::string& reason) noexcept override;

 protected:
  /// As advance(). What it throws is told to all.
  virtual engine::Turn step() = 0;

  /// Something has come or gone.
  void note_moved() { next_inquiry_ = engine::Lookout::first_inquiry; }

  engine::Lookout& lookout_;
  std::uint32_t sequence_;
  std::string label_;
  Rank rank_;
  Rank ranks_;

 private:
  Seconds next_inquiry_ = engine::Lookout::first_inquiry;
};

/// An operation over encoded gradients.
class CodecOperation : public ExchangeOperation {
 public:
  CodecOperation(const CodedRequest& request, engine::Lookout& lookout, std::uint32_t sequence,
                 std::string label)
      : ExchangeOperation(lookout, sequence, std::move(label)), request_(request) {}

 protected:
  /// `rank` as the codec knows it: draws of owners differ from those of any sender, but do not depend on who
  /// the owner is, so that the bits do not depend on buckets.
  compress::Piece piece_of(const Run& run, Rank rank) const;

  std::span<float> values(const Run& run) const { return request_.bucket.subspan(run.at, run.count); }

  CodedState& state(const Run& run) const { return *request_.states[run.parameter]; }

  /// The average of what is a sum, if that is asked for: divided once.
  void divide(const Run& run) const;

  CodedRequest request_;
};

/// Of reencodable codecs: by owners of slices. `longest`: bytes of a message that needs no question first.
std::unique_ptr<engine::Operation> make_by_owners(const CodedRequest& request, engine::Lookout& lookout,
                                                  std::uint32_t sequence, std::string label,
                                                  std::size_t longest);
/// Of gatherable codecs: every rank gets what every other has sent, and adds it in the order of ranks.
std::unique_ptr<engine::Operation> make_by_gathering(const CodedRequest& request, engine::Lookout& lookout,
                                                     std::uint32_t sequence, std::string label,
                                                     std::size_t longest);
/// Of linear codecs: an allreduce of what they have encoded, for each of their rounds.
std::unique_ptr<engine::Operation> make_by_sums(const CodedRequest& request, engine::Lookout& lookout,
                                                std::uint32_t sequence, std::string label,
                                                engine::CommunicatorState& communicator);

}  // namespace tutti::exchange
