#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tutti::base {

enum class Level : std::uint8_t { error, warning, info, debug };

/// Writes whole lines to standard error: "tutti [rank 3 of 8, host] warning: …". An object with one owner, no
/// global.
class Log {
 public:
  Log(Level level, std::string where) : level_(level), where_(std::move(where)) {}

  bool shows(Level level) const { return level <= level_; }

  template <class... Args>
  void operator()(Level level, fmt::format_string<Args...> format, Args&&... args) const {
    if (shows(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void write(Level level, std::string_view text) const;

  Level level_;
  std::string where_;
};

/// "error", "warning", "info", "debug". Throws InvalidArgument.
Level level_from(std::string_view name);

}  // namespace tutti::base
