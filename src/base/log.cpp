#include "base/log.hpp"

#include <array>
#include <cstdio>

#include "base/error.hpp"

namespace tutti::base {
namespace {

constexpr std::array<std::string_view, 4> names{"error", "warning", "info", "debug"};

}  // namespace

void Log::write(Level level, std::string_view text) const {
  // One write call for the line, so that lines of several ranks do not mix.
  const std::string line =
      fmt::format("tutti [{}] {}: {}\n", where_, names[static_cast<std::size_t>(level)], text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Level level_from(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Level>(i);
  }
  fail<InvalidArgument>("unknown log level '{}'; known are {}", name, fmt::join(names, ", "));
}

}  // namespace tutti::base
