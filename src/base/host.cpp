#include "base/host.hpp"

#include <unistd.h>

#include <array>

namespace tutti::base {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

int process_id() {
  return getpid();
}

int installed_processors() {
  return static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
}

}  // namespace tutti::base
