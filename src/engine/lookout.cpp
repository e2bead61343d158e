#include "engine/lookout.hpp"

#include <fmt/format.h>

namespace tutti::engine {

using transport::Notice;

namespace {

constexpr Seconds time_between_inquiries{2};

}  // namespace

Notice::Kind kind_of(const std::exception& error) {
  if (dynamic_cast<const MismatchError*>(&error) != nullptr) return Notice::Kind::mismatch;
  if (dynamic_cast<const TimeoutError*>(&error) != nullptr) return Notice::Kind::timeout;
  return Notice::Kind::peer_lost;
}

void Lookout::check(const std::function<std::string()>& describe) const {
  if (failure_) node::throw_as(failure_->kind, fmt::format("{}; meanwhile {}", failure_->text, describe()));
}

void Lookout::look(std::uint32_t sequence, Seconds idle, Seconds& next_inquiry,
                   const std::function<std::string()>& describe) {
  while (const auto notice = transport_.heard()) {
    if (notice->kind == Notice::Kind::inquiry) {
      answer(*notice);
    } else if (!failure_) {
      failure_ = notice;
      failure_->text = fmt::format("{} reports: {}", transport_.describe(notice->from), notice->text);
    }
  }
  check(describe);
  const transport::Signature signature = calls_.at(sequence);
  if (node_ != nullptr) {
    if (const auto trouble = node_->trouble(sequence, signature))
      end(trouble->kind, sequence, fmt::format("{}; meanwhile {}", trouble->text, describe()));
  }
  if (idle < next_inquiry) return;
  transport_.tell_all({.kind = Notice::Kind::inquiry, .sequence = sequence, .signature = signature});
  next_inquiry = idle + time_between_inquiries;
}

/// A rank that waits may wait for this one, which may never send what it expects.
void Lookout::answer(const Notice& inquiry) {
  if (!calls_.knows(inquiry.sequence)) return;
  const transport::Signature mine = calls_.at(inquiry.sequence);
  if (mine == inquiry.signature) return;
  end(Notice::Kind::mismatch, inquiry.sequence,
      fmt::format("operation #{}, {}, on {}: {} called {}; {}", inquiry.sequence, engine::describe(mine),
                  transport_.describe(transport_.rank()), transport_.describe(inquiry.from),
                  difference(mine, inquiry.signature), same_everywhere));
}

void Lookout::end(Notice::Kind kind, std::uint32_t sequence, const std::string& text) {
  tell(kind, sequence, text);
  node::throw_as(kind, text);
}

void Lookout::tell(Notice::Kind kind, std::uint32_t sequence, const std::string& text) noexcept {
  if (!failure_) failure_ = Notice{.kind = kind, .from = transport_.rank(), .text = text};
  transport_.tell_all({.kind = kind, .sequence = sequence, .text = text});
  if (node_ != nullptr) node_->say_failed(kind, text);
}

}  // namespace tutti::engine
