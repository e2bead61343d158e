#include "gradient/states.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "base/error.hpp"

namespace tutti::gradient {
namespace {

using Array = ReducerState::Array;

/// The parts of the name of a saved array.
struct Label {
  std::string_view codec;
  std::string_view place;
  Rank rank = 0;
  std::string_view array;
  std::string_view parameter;
};

Label parse(std::string_view name) {
  std::array<std::string_view, 4> parts;
  std::string_view rest = name;
  for (std::string_view& part : parts) {
    const std::size_t end = rest.find('|');
    base::require(end != std::string_view::npos, "'{}' is no array of a Reducer's state", name);
    part = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  Label label{.codec = parts[0], .place = parts[1], .array = parts[3], .parameter = rest};
  const auto [end, error] = std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), label.rank);
  base::require(error == std::errc() && end == parts[2].data() + parts[2].size() && label.rank >= 0 &&
                    (label.place == "local" || label.place == "owner" || label.place == "pending"),
                "'{}' is no array of a Reducer's state", name);
  return label;
}

std::string join(std::string_view codec, std::string_view place, Rank rank, std::string_view array,
                 std::string_view parameter) {
  return fmt::format("{}|{}|{}|{}|{}", codec, place, rank, array, parameter);
}

void add(std::span<float> sum, std::span<const float> values, float factor) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * values[i];
}

double number_of(std::span<const float> halves) {
  return std::bit_cast<double>(std::array{halves[0], halves[1]});
}

/// Collective: the arrays of `root` on every rank.
std::vector<Array> broadcast(Communicator& communicator, std::vector<Array> arrays, Rank root) {
  std::string names;
  std::vector<std::uint64_t> sizes;
  for (const Array& array : arrays) {
    names += array.name + '\n';
    sizes.push_back(array.values.size());
  }
  std::array<std::uint64_t, 2> lengths{names.size(), sizes.size()};
  communicator.broadcast(std::span<std::uint64_t>(lengths), root, {.name = "state: lengths"});
  names.resize(lengths[0]);
  sizes.resize(lengths[1]);
  communicator.broadcast(names.data(), names.size(), DType::u8, root, {.name = "state: names"});
  communicator.broadcast(std::span(sizes), root, {.name = "state: sizes"});
  arrays.resize(sizes.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::size_t end = names.find('\n', at);
    arrays[i].name = names.substr(at, end - at);
    arrays[i].values.resize(sizes[i]);
    communicator.broadcast(std::span(arrays[i].values), root, {.name = "state: values"});
    at = end + 1;
  }
  return arrays;
}

}  // namespace

CodecStates::CodecStates(Communicator& communicator, std::span<const Reducer::Parameter> parameters, Op op)
    : communicator_(communicator), op_(op), pointers_(parameters.size()) {
  for (const Reducer::Parameter& parameter : parameters) {
    slots_.emplace_back();
    slots_.back().name = parameter.name;
    slots_.back().count = parameter.count;
  }
}

void CodecStates::assign(std::size_t parameter, const compress::Codec* codec, std::string_view text) {
  Slot& slot = slots_[parameter];
  if (slot.codec == codec && slot.text == text) return;
  flush(slot);
  slot.codec = codec;
  slot.text = codec == nullptr ? "" : text;
  slot.state = codec == nullptr ? nullptr : std::make_unique<exchange::CodedState>(slot.count);
  pointers_[parameter] = slot.state.get();
}

bool CodecStates::owes(std::size_t parameter) const {
  const Slot& slot = slots_[parameter];
  return !slot.pending.empty() || (slot.codec != nullptr && slot.codec->feedback());
}

void CodecStates::settle(std::size_t parameter, std::span<float> gradient) {
  Slot& slot = slots_[parameter];
  if (slot.pending.empty()) return;
  const auto part = static_cast<float>(1 / slot.settling);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float now = slot.pending[i] * part;
    gradient[i] += now;
    slot.pending[i] -= now;
  }
  slot.settling -= 1;
  if (slot.settling < 1) slot.pending.clear();
}

void CodecStates::owe(Slot& slot, std::span<const float> values, float factor) {
  slot.pending.resize(slot.count);
  slot.settling = settling_steps;
  add(slot.pending, values, factor);
}

/// An owner's residual is of the result: of an average, so much times the number of ranks is missing.
void CodecStates::flush(Slot& slot) {
  if (!slot.state) return;
  const auto residual = [](const compress::State& state) {
    const auto found = state.arrays().find(compress::residual_name);
    return found == state.arrays().end() ? std::span<const float>() : std::span(found->second);
  };
  const float owned = op_ == Op::average ? static_cast<float>(communicator_.size()) : 1;
  if (const auto local = residual(slot.state->local); !local.empty()) owe(slot, local, 1);
  if (const auto owner = residual(slot.state->owner); !owner.empty()) owe(slot, owner, owned);
}

void CodecStates::hand_over(std::span<const exchange::Run> mine) {
  // One by one: parameters may have codecs of their own.
  std::vector<exchange::CodedState*> one(pointers_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].codec == nullptr) continue;
    std::ranges::fill(one, nullptr);
    one[i] = pointers_[i];
    exchange::hand_over(communicator_, *slots_[i].codec, one, mine);
  }
}

std::vector<Array> CodecStates::own_arrays() const {
  std::vector<Array> arrays;
  for (const Slot& slot : slots_) {
    const auto name = [&](std::string_view place, std::string_view array) {
      return join(slot.text, place, communicator_.rank(), array, slot.name);
    };
    const auto add_number = [&](std::string_view place, std::string_view number, double value) {
      const auto halves = std::bit_cast<std::array<float, 2>>(value);
      arrays.push_back({name(place, fmt::format("#{}", number)), {halves.begin(), halves.end()}});
    };
    if (!slot.pending.empty()) {
      arrays.push_back({name("pending", compress::residual_name), slot.pending});
      add_number("pending", "settling", slot.settling);
    }
    if (!slot.state) continue;
    for (const auto& [array, values] : slot.state->local.arrays())
      arrays.push_back({name("local", array), values});
    for (const auto& [number, value] : slot.state->local.numbers()) add_number("local", number, value);
  }
  return arrays;
}

std::vector<Array> CodecStates::save() {
  std::vector<Array> all;
  for (Rank rank = 0; rank < communicator_.size(); ++rank) {
    auto arrays =
        broadcast(communicator_, communicator_.rank() == rank ? own_arrays() : std::vector<Array>(), rank);
    if (communicator_.rank() == 0)
      all.insert(all.end(), std::make_move_iterator(arrays.begin()), std::make_move_iterator(arrays.end()));
  }
  for (const Slot& slot : slots_) {
    if (slot.codec == nullptr || !slot.codec->feedback() ||
        slot.codec->algebra() != compress::Algebra::reencodable)
      continue;
    const auto residual = slot.state->owner.array(compress::residual_name);
    std::vector<float> whole(residual.begin(), residual.end());
    communicator_.reduce(std::span(whole), Op::sum, 0, {.name = "owner residuals"});
    if (communicator_.rank() == 0)
      all.push_back({join(slot.text, "owner", 0, compress::residual_name, slot.name), std::move(whole)});
  }
  return all;
}

std::size_t CodecStates::find(std::string_view parameter) const {
  const auto found = std::ranges::find(slots_, parameter, &Slot::name);
  base::require(found != slots_.end(), "the state is of a parameter '{}', which this Reducer does not have",
                parameter);
  return static_cast<std::size_t>(found - slots_.begin());
}

void CodecStates::require_mine(const ReducerState& state) const {
  base::require(state.ranks > 0, "the state of {} ranks: expected 1 or more", state.ranks);
  for (const Array& array : state.arrays) {
    const Label label = parse(array.name);
    const Slot& slot = slots_[find(label.parameter)];
    base::require(label.array != compress::residual_name || array.values.size() == slot.count,
                  "the state has {} elements of parameter '{}', this Reducer {}", array.values.size(),
                  slot.name, slot.count);
    base::require(!label.array.starts_with('#') || array.values.size() == 2,
                  "'{}' has {} elements: expected the 2 halves of a number", array.name, array.values.size());
  }
}

void CodecStates::restore(const ReducerState& state, std::span<const exchange::Run> mine) {
  require_mine(state);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].pending.clear();
    if (!slots_[i].state) continue;
    slots_[i].state = std::make_unique<exchange::CodedState>(slots_[i].count);
    pointers_[i] = slots_[i].state.get();
  }
  const Rank ranks = communicator_.size();
  // An average divides by the ranks of today what was to be divided by those of then.
  const float share = op_ == Op::average ? static_cast<float>(ranks) / static_cast<float>(state.ranks) : 1;
  for (const Array& array : state.arrays) {
    const Label label = parse(array.name);
    const std::size_t parameter = find(label.parameter);
    Slot& slot = slots_[parameter];
    const bool residual = label.array == compress::residual_name;
    if (slot.codec == nullptr || slot.text != label.codec || label.place == "pending") {
      const float owned = op_ == Op::average ? static_cast<float>(ranks) : 1;
      if (label.array == "#settling" && state.ranks == ranks && label.rank == communicator_.rank())
        slot.settling = number_of(array.values);
      if (residual && label.rank % ranks == communicator_.rank())
        owe(slot, array.values, label.place == "owner" ? owned : share);
    } else if (label.place == "local") {
      take_local(slot, label.array, label.rank, array.values, state.ranks);
    } else {
      const auto kept = slot.state->owner.array(label.array);
      for (const exchange::Run& run : mine) {
        if (run.parameter != parameter) continue;
        const auto of_run = std::span(array.values).subspan(run.offset, run.count);
        std::ranges::copy(of_run, kept.begin() + static_cast<std::ptrdiff_t>(run.offset));
      }
    }
  }
}

/// What saved rank `from` of `saved` had in one array or number of its codec.
void CodecStates::take_local(Slot& slot, std::string_view array, Rank from, std::span<const float> values,
                             Rank saved) {
  const Rank ranks = communicator_.size();
  const Rank rank = communicator_.rank();
  compress::State& local = slot.state->local;
  if (array.starts_with('#')) {
    if (from == rank % saved) local.number(array.substr(1)) = number_of(values);
    return;
  }
  if (slot.codec->shared(array) ? from != 0 : from % ranks != rank) return;
  const auto kept = local.array(array, values.size());
  if (slot.codec->shared(array) || saved == ranks) {
    std::ranges::copy(values, kept.begin());
  } else {
    add(kept, values, op_ == Op::average ? static_cast<float>(ranks) / static_cast<float>(saved) : 1);
  }
}

}  // namespace tutti::gradient
