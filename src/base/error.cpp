#include "base/error.hpp"

#include <system_error>

namespace tutti::base {

std::string errno_text(int error_number) {
  return fmt::format("{} (errno {})", std::generic_category().message(error_number), error_number);
}

}  // namespace tutti::base
