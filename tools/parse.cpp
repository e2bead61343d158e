#include "tools/parse.hpp"

#include <charconv>
#include <vector>

#include "base/error.hpp"

namespace tutti::tools {

std::pair<Rank, Rank> parse_range(std::string_view text, std::string_view option) {
  const auto number = [&](std::string_view part) {
    Rank value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    base::require(error == std::errc() && end == part.data() + part.size() && value >= 1,
                  "{}='{}': expected a rank count or a range such as 1..128", option, text);
    return value;
  };
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return {number(text), number(text)};
  return {number(text.substr(0, dots)), number(text.substr(dots + 2))};
}

schedule::Collective parse_collective(std::string_view name) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < schedule::collective_count; ++i) {
    const auto collective = static_cast<schedule::Collective>(i);
    if (schedule::name_of(collective) == name) return collective;
    names.push_back(schedule::name_of(collective));
  }
  base::fail<InvalidArgument>("unknown collective '{}'; known are {}", name, fmt::join(names, ", "));
}

}  // namespace tutti::tools
