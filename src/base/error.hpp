#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "tutti/error.hpp"

namespace tutti::base {

/// An error that every rank throws with the same text, after they have agreed on it: enough if one of them
/// prints it.
class AgreedError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// Throws E with a formatted message.
template <class E = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws InvalidArgument with a formatted message unless `ok`.
template <class... Args>
void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw InvalidArgument(fmt::format(format, std::forward<Args>(args)...));
}

/// "No such file or directory (errno 2)".
std::string errno_text(int error_number);

}  // namespace tutti::base
