#include "gradient/automatic.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"

namespace tutti::gradient {
namespace {

/// A plan that is predicted to take so many times as long as the best one is not tried; dense, which is what
/// all others must beat, is given a little more.
constexpr double hopeless = 2.0;
constexpr double hopeless_dense = 3.0;
constexpr std::size_t most_tried = 5;

double rounded(double milliseconds) {
  return std::round(milliseconds * 1e6) / 1e3;
}

}  // namespace

std::optional<compress::ErrorClass> automatic_error(std::string_view codec) {
  if (codec.empty()) return {};
  const std::size_t colon = std::min(codec.find(':'), codec.size());
  if (codec.substr(0, colon) != "auto") {
    compress::make_codec(codec);
    return {};
  }
  constexpr std::array<std::string_view, 4> names{"cast", "exact", "bounded", "feedback"};
  compress::Options options("auto", codec.substr(std::min(colon + 1, codec.size())));
  const std::string error = options.choice("error", names);
  options.finish();
  if (error == "exact") return compress::ErrorClass::exact;
  if (error == "bounded") return compress::ErrorClass::bounded;
  return error == "feedback" ? compress::ErrorClass::feedback : compress::ErrorClass::cast;
}

Automatic::Automatic(Communicator& communicator, compress::ErrorClass error, Journal journal)
    : communicator_(communicator), journal_(std::move(journal)), candidates_(candidates_of(error)) {}

const std::vector<std::size_t>& Automatic::choice() const {
  return chooser_ ? plans_[chooser_->current()].choice : nothing_;
}

Automatic::Plan Automatic::uniform(std::size_t candidate) const {
  Plan plan{.name = candidates_[candidate].text};
  for (const auto& bucket : buckets_) {
    plan.choice.push_back(bucket.empty() ? 0 : candidate);
    if (!bucket.empty())
      plan.predicted += predict(wire_, candidates_[candidate], communicator_.size(), bucket);
  }
  return plan;
}

Automatic::Plan Automatic::cheapest() const {
  Plan plan{.name = "cheapest of each bucket"};
  for (const auto& bucket : buckets_) {
    plan.choice.push_back(0);
    if (bucket.empty()) continue;
    double least = 0;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const double seconds = predict(wire_, candidates_[c], communicator_.size(), bucket);
      if (c > 0 && seconds >= least) continue;
      least = seconds;
      plan.choice.back() = c;
    }
    plan.predicted += least;
  }
  return plan;
}

int Automatic::error_of(const Plan& plan) const {
  int error = 0;
  for (const std::size_t c : plan.choice) {
    if (candidates_[c].codec) error = std::max(error, static_cast<int>(candidates_[c].codec->error_class()));
  }
  return error;
}

void Automatic::plan(std::string_view reason, std::uint64_t step) {
  const std::vector<std::size_t> before = choice();
  const std::size_t patience = chooser_ ? chooser_->patience() : 2;
  const bool choice_to_make = communicator_.size() > 1 && candidates_.size() > 1;
  if (choice_to_make) wire_ = measure(communicator_, candidates_);
  plans_.clear();
  for (std::size_t c = 0; choice_to_make && c < candidates_.size(); ++c) plans_.push_back(uniform(c));
  if (plans_.empty()) plans_.push_back(uniform(0));
  const Plan dense = plans_.front();
  Plan mixed = cheapest();
  if (std::ranges::find(plans_, mixed.choice, &Plan::choice) == plans_.end() && plans_.size() > 1)
    plans_.push_back(std::move(mixed));
  std::ranges::stable_sort(plans_, {}, &Plan::predicted);
  const double least = plans_.front().predicted;
  std::erase_if(plans_, [&](const Plan& plan) {
    return plan.predicted > (plan.choice == dense.choice ? hopeless_dense : hopeless) * least;
  });
  if (plans_.size() > most_tried) {
    const bool keeps_dense = std::ranges::find(plans_, dense.choice, &Plan::choice) != plans_.end();
    plans_.resize(most_tried);
    if (keeps_dense && std::ranges::find(plans_, dense.choice, &Plan::choice) == plans_.end())
      plans_.back() = dense;
  }
  std::optional<std::size_t> incumbent;
  const auto same = std::ranges::find(plans_, before, &Plan::choice);
  if (same != plans_.end()) incumbent = static_cast<std::size_t>(same - plans_.begin());
  std::vector<Chooser::Plan> to_choose;
  for (const Plan& plan : plans_) to_choose.push_back({.error = error_of(plan)});
  chooser_.emplace(std::move(to_choose), incumbent, patience);
  tell_plans(reason, step);
  if (!chooser_->racing()) tell_choice(step);
}

void Automatic::start(Buckets buckets, std::uint64_t step) {
  buckets_ = std::move(buckets);
  plan("start", step);
}

bool Automatic::after_step(double seconds, std::uint64_t step) {
  const std::vector<std::size_t> before = choice();
  if (chooser_->note(seconds)) {
    const bool racing = chooser_->racing();
    Chooser::Decision decision;
    if (communicator_.rank() == 0) decision = chooser_->decide();
    std::array<std::uint64_t, 4> words{decision.turn, decision.keep, decision.again, decision.window};
    communicator_.broadcast(std::span<std::uint64_t>(words), 0, {.name = "choice of codecs"});
    decision = {.turn = words[0], .keep = words[1], .again = words[2], .window = words[3]};
    chooser_->apply(decision);
    if (racing && !chooser_->racing()) tell_choice(step);
    if (decision.again != 0) plan("steps take another time", step);
  }
  return choice() != before;
}

void Automatic::tell_plans(std::string_view reason, std::uint64_t step) const {
  if (communicator_.rank() != 0 || !journal_) return;
  nlohmann::ordered_json line{{"event", "codecs measured"}, {"step", step}, {"reason", reason}};
  line["wire"] = {{"allreduce_latency_us", rounded(1e3 * wire_.dense_latency)},
                  {"allreduce_ns_per_byte", rounded(1e6 * wire_.dense_per_byte)},
                  {"message_latency_us", rounded(1e3 * wire_.message_latency)},
                  {"message_ns_per_byte", rounded(1e6 * wire_.message_per_byte)}};
  for (const Candidate& candidate : candidates_) {
    if (!candidate.codec) continue;
    line["codecs"][candidate.text] = {{"encode_ns", rounded(1e6 * candidate.encode)},
                                      {"decode_ns", rounded(1e6 * candidate.decode)},
                                      {"bytes", candidate.bytes}};
  }
  for (const Plan& plan : plans_)
    line["plans"].push_back({{"name", plan.name}, {"predicted_ms", rounded(plan.predicted)}});
  journal_(line.dump());
}

void Automatic::tell_choice(std::uint64_t step) const {
  if (communicator_.rank() != 0 || !journal_) return;
  const Plan& chosen = plans_[chooser_->current()];
  nlohmann::ordered_json line{{"event", "codecs chosen"}, {"step", step}, {"plan", chosen.name}};
  for (const std::size_t c : chosen.choice) line["buckets"].push_back(candidates_[c].text);
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const auto measured = chooser_->measured(i);
    line["plans"].push_back({{"name", plans_[i].name}, {"predicted_ms", rounded(plans_[i].predicted)}});
    if (measured) line["plans"].back()["measured_step_ms"] = rounded(*measured);
  }
  const Plan dense = uniform(0);
  line["predicted_gain_ms"] = rounded(dense.predicted - chosen.predicted);
  const auto raced = std::ranges::find(plans_, dense.choice, &Plan::choice);
  const auto of_chosen = chooser_->measured(chooser_->current());
  if (raced != plans_.end() && of_chosen) {
    const auto of_dense = chooser_->measured(static_cast<std::size_t>(raced - plans_.begin()));
    if (of_dense) line["realized_gain_ms"] = rounded(*of_dense - *of_chosen);
  }
  journal_(line.dump());
}

}  // namespace tutti::gradient
