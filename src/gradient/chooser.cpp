#include "gradient/chooser.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.hpp"

namespace tutti::gradient {
namespace {

/// Slower by so much than the best after a round: out.
constexpr double tolerance[Chooser::rounds] = {1.25, 1.10, 1.0};
/// What loses less, or is in place, is taken if it is slower by no more than this.
constexpr double tie = 1.02;
/// Slower by so much than another plan in the first steps of its first turn: it has no more of them.
constexpr double far_slower = 1.5;
/// What a turn should take; of those after the first round, twice that.
constexpr double seconds_of_turn = 0.2;
/// Another time than usual.
constexpr double change = 0.2;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

Chooser::Chooser(std::vector<Plan> plans, std::optional<std::size_t> incumbent, std::size_t patience)
    : plans_(std::move(plans)), incumbent_(incumbent), patience_(patience), seconds_(plans_.size()) {
  base::require(!plans_.empty() && plans_.size() <= most_plans, "{} plans: expected 1 to {}", plans_.size(),
                most_plans);
  in_ = plans_.size() == most_plans ? ~std::uint64_t{0} : (std::uint64_t{1} << plans_.size()) - 1;
  racing_ = plans_.size() > 1;
  if (racing_) start_round();
}

void Chooser::start_round() {
  turns_.clear();
  for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
    if (in(plan)) turns_.push_back(plan);
  }
  // To and fro, so that what changes slowly hits all alike.
  if (round_ % 2 == 0) std::ranges::reverse(turns_);
  next_turn();
}

void Chooser::next_turn() {
  current_ = turns_.back();
  step_of_turn_ = 0;
  if (round_ == 0) turn_ = 0;
}

bool Chooser::length_due() const {
  return racing_ && turn_ == 0;
}

std::uint64_t Chooser::turn_for(double seconds) const {
  const double wanted = (length_due() ? 1 : 2) * seconds_of_turn / std::max(seconds, 1e-6);
  const auto most = static_cast<double>(length_due() ? longest_turn / 2 : longest_turn);
  return static_cast<std::uint64_t>(std::clamp(wanted, static_cast<double>(shortest_turn), most));
}

bool Chooser::end_turn() {
  turns_.pop_back();
  if (turns_.empty()) return true;
  next_turn();
  return false;
}

bool Chooser::note(double seconds) {
  if (!racing_) {
    look_.push_back(seconds);
    return look_.size() >= window_;
  }
  if (step_of_turn_ > 0) seconds_[current_].push_back(seconds);
  ++step_of_turn_;
  if (length_due()) return step_of_turn_ + 1 >= shortest_turn;
  return step_of_turn_ >= turn_ && end_turn();
}

std::optional<double> Chooser::measured(std::size_t plan) const {
  if (seconds_.at(plan).empty()) return {};
  return median(seconds_[plan]);
}

std::size_t Chooser::best() const {
  std::size_t best = plans_.size();
  for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
    if (in(plan) && measured(plan) && (best == plans_.size() || *measured(plan) < *measured(best)))
      best = plan;
  }
  return best;
}

std::size_t Chooser::pick() const {
  const double limit = tie * *measured(best());
  std::size_t picked = best();
  for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
    if (in(plan) && *measured(plan) <= limit && plans_[plan].error < plans_[picked].error) picked = plan;
  }
  const bool stays = incumbent_ && in(*incumbent_) && *measured(*incumbent_) <= limit &&
                     plans_[*incumbent_].error <= plans_[picked].error;
  return stays ? *incumbent_ : picked;
}

std::uint64_t Chooser::window_for(double seconds) const {
  return static_cast<std::uint64_t>(std::clamp(2.0 / std::max(seconds, 1e-6), 8.0, 64.0));
}

Chooser::Decision Chooser::decide() const {
  if (!racing_) {
    const bool other = usual_ && std::abs(median(look_) / *usual_ - 1) > change;
    return {.keep = in_, .again = other && strikes_ + 1 >= patience_ ? 1U : 0U, .window = window_};
  }
  if (length_due()) {
    const bool hopeless = *measured(current_) > far_slower * *measured(best());
    return {.turn = hopeless ? shortest_turn : turn_for(*measured(current_)), .keep = in_, .window = window_};
  }
  Decision decision{.turn = turn_for(*measured(best()))};
  const double limit = tolerance[round_] * *measured(best());
  for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
    if (in(plan) && *measured(plan) <= limit) decision.keep |= std::uint64_t{1} << plan;
  }
  if (round_ + 1 == rounds || std::has_single_bit(decision.keep))
    decision.keep = std::uint64_t{1} << (round_ + 1 == rounds ? pick() : best());
  decision.window = window_for(*measured(best()));
  return decision;
}

void Chooser::apply(const Decision& decision) {
  const bool due = length_due();
  window_ = std::max<std::uint64_t>(1, decision.window);
  if (!racing_) {
    const double now = median(look_);
    look_.clear();
    if (!usual_) usual_ = now;
    strikes_ = std::abs(now / *usual_ - 1) > change ? strikes_ + 1 : 0;
    return;
  }
  turn_ = std::max<std::uint64_t>(shortest_turn, decision.turn);
  if (due) return;
  in_ = decision.keep;
  ++round_;
  if (std::has_single_bit(in_)) {
    racing_ = false;
    current_ = static_cast<std::size_t>(std::countr_zero(in_));
    // A race that changes nothing was for nothing: wait longer for the next one.
    if (incumbent_ && *incumbent_ == current_) patience_ = std::min<std::size_t>(2 * patience_, 64);
    return;
  }
  start_round();
}

}  // namespace tutti::gradient
