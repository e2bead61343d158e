#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/codec.hpp"
#include "exchange/coded.hpp"
#include "tutti/reducer.hpp"

namespace tutti::gradient {

/// What codecs keep of the parameters of a Reducer between steps, by parameter: never by bucket, and never
/// lost. A parameter whose codec changes gets what the old one has not sent added to its next gradients: over
/// settling_steps, since all at once would be a step many times as long as any other.
///
/// As saved, an array is named "codec|place|rank|array|parameter": place is local (what a rank has not sent),
/// owner (what owners of slices have not, put together) or pending (what goes to the next gradients). Numbers
/// of a codec are arrays named "#name", of two elements that hold the bits of a double.
class CodecStates {
 public:
  static constexpr int settling_steps = 32;

  CodecStates(Communicator& communicator, std::span<const Reducer::Parameter> parameters, Op op);

  /// By parameter; null: it has no codec.
  std::span<exchange::CodedState* const> all() const { return pointers_; }

  /// From now on this codec encodes it; null: none does. `text`: what the codec was made from.
  void assign(std::size_t parameter, const compress::Codec* codec, std::string_view text);
  /// Something that was not sent goes with the next gradient.
  bool owes(std::size_t parameter) const;
  /// gradient += this step's part of what old codecs have not sent.
  void settle(std::size_t parameter, std::span<float> gradient);

  /// Collective. Owners are others from now on. `mine`: the runs that this rank owns.
  void hand_over(std::span<const exchange::Run> mine);

  /// Collective. On rank 0 what all ranks keep, elsewhere nothing.
  std::vector<ReducerState::Array> save();
  /// Collective; `state` is the same on every rank. What is there is replaced. At another rank count what
  /// ranks had not sent is summed up and handed on: rank r gets what the saved ranks r, r + size(), … had.
  /// Throws InvalidArgument, before anything has changed, if it is not of these parameters.
  void restore(const ReducerState& state, std::span<const exchange::Run> mine);

 private:
  struct Slot {
    std::string name;
    std::size_t count = 0;
    const compress::Codec* codec = nullptr;
    std::string text;
    std::unique_ptr<exchange::CodedState> state;
    std::vector<float> pending;
    double settling = 0;  ///< steps in which that goes out
  };

  void flush(Slot& slot);
  void owe(Slot& slot, std::span<const float> values, float factor);
  std::vector<ReducerState::Array> own_arrays() const;
  std::size_t find(std::string_view parameter) const;
  void require_mine(const ReducerState& state) const;
  void take_local(Slot& slot, std::string_view array, Rank from, std::span<const float> values, Rank saved);

  Communicator& communicator_;
  Op op_;
  std::vector<Slot> slots_;
  std::vector<exchange::CodedState*> pointers_;
};

}  // namespace tutti::gradient
