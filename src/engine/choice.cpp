#include "engine/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/options.hpp"

namespace tutti::engine {
namespace {

struct Named {
  std::string_view name;
  Path path;
};

constexpr Named paths[] = {{"node", Path::node}, {"hierarchy", Path::hierarchy}, {"mpi", Path::library}};

std::uint32_t number(std::string_view text, std::string_view whole, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  base::require(error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most,
                "algorithm '{}': '{}' is not a number from 1 to {}", whole, text, most);
  return value;
}

void set(Choice& choice, std::string_view option, std::string_view whole) {
  const auto at = option.find('=');
  const std::string_view key = option.substr(0, at);
  const std::string_view value = at == std::string_view::npos ? "" : option.substr(at + 1);
  if (key == "radix") {
    choice.radix = number(value, whole, 1024);
    const auto radices = choice.algorithm->radices;
    base::require(std::ranges::find(radices, choice.radix) != radices.end(),
                  "algorithm '{}': radix {} is not one of those that are proved: {}", whole, choice.radix,
                  fmt::join(radices, ", "));
  } else if (key == "segment") {
    choice.segment_bytes = base::parse_bytes(value, whole);
  } else if (key == "flight") {
    choice.in_flight = number(value, whole, 64);
  } else {
    base::fail<InvalidArgument>("algorithm '{}': unknown option '{}'; known are radix, segment, flight",
                                whole, key);
  }
}

}  // namespace

Choice parse_choice(schedule::Collective collective, std::string_view text) {
  const auto end = text.find(':');
  const std::string_view name = text.substr(0, end);
  for (const Named& known : paths) {
    if (known.name != name) continue;
    base::require(end == std::string_view::npos, "algorithm '{}': '{}' has no options", text, name);
    return {.path = known.path};
  }
  Choice choice{.path = Path::schedule, .algorithm = &schedule::require_algorithm(collective, name)};
  choice.radix = choice.algorithm->radices.front();
  for (std::size_t at = end; at != std::string_view::npos;) {
    const std::size_t next = text.find(':', at + 1);
    set(choice, text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1), text);
    at = next;
  }
  return choice;
}

std::string text_of(const Choice& choice) {
  if (choice.path == Path::automatic) return "automatic";
  if (choice.path != Path::schedule)
    return std::string(std::ranges::find(paths, choice.path, &Named::path)->name);
  std::string text(choice.algorithm->name);
  if (choice.radix != choice.algorithm->radices.front()) text += fmt::format(":radix={}", choice.radix);
  if (choice.segment_bytes != 0) text += fmt::format(":segment={}", choice.segment_bytes);
  if (choice.in_flight != 0) text += fmt::format(":flight={}", choice.in_flight);
  return text;
}

}  // namespace tutti::engine
