#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/lookout.hpp"
#include "engine/plan.hpp"
#include "engine/request.hpp"
#include "engine/signature.hpp"
#include "engine/workspace.hpp"
#include "transport/transport.hpp"

namespace tutti::engine {

/// Carries out a plan over a transport: several segments in flight, and in each its strands, every one with
/// its own program counter.
class ScheduleOperation final : public Operation {
 public:
  /// `lookout` must outlive the operation.
  ScheduleOperation(std::shared_ptr<Plan> plan, const Request& request, Lookout& lookout,
                    std::uint32_t sequence);
  ~ScheduleOperation() override;

  Turn advance() override;
  std::string describe() const override;
  void look_around(Seconds idle) override;
  void abandon(const std::string& reason) noexcept override;

 private:
  struct Segment {
    std::uint64_t index = 0;
    std::uint32_t open_strands = 0;
    std::unique_ptr<Workspace> workspace;
  };

  Turn turn();
  bool start_segments();
  void start(Segment& segment);
  void finish(Segment& segment);
  bool advance(Segment& segment);
  bool advance(Segment& segment, std::uint32_t strand);
  void post(Segment& segment, Lane& lane, const Round& round, std::uint32_t strand);
  void post_one(Segment& segment, Lane& lane, const Move& move, Lane::Message& message, transport::Tag tag);
  bool poll(Segment& segment, Lane& lane, const Round& round);
  void land(const Segment& segment, Lane& lane, const Move& move);
  void reduce_slots(Segment& segment, Lane& lane, const Move& move);
  void scale_input(Segment& segment);
  void copy_own_block(const Segment& segment);
  void cancel(Segment& segment) noexcept;
  std::string label() const;

  std::size_t elements(const Segment& segment, schedule::Block blocks) const {
    return plan_->geometry().in_segment(segment.index, blocks).count;
  }

  /// First byte of a run of blocks where it lies.
  std::byte* at(const Segment& segment, Place place, schedule::Block blocks) const;
  DType type_at(Place place, State state) const;

  std::shared_ptr<Plan> plan_;
  const std::byte* input_;
  std::byte* output_;
  transport::Transport& transport_;
  Lookout& lookout_;
  std::uint32_t sequence_;
  transport::Signature signature_;
  std::uint64_t next_segment_ = 0;
  Seconds next_inquiry_ = Lookout::first_inquiry;  ///< idle time after which the others are asked
  std::vector<Segment> segments_;                  ///< in flight; an index of `none` is free
};

}  // namespace tutti::engine
