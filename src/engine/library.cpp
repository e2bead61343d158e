// The shared library is made of the static layers; CMake wants a source of its own.
#include "tutti/tutti.hpp"

namespace tutti {

static_assert(TUTTI_VERSION_MAJOR == 0 && TUTTI_VERSION_MINOR == 1,
              "version.hpp and CMakeLists.txt say the same");

}  // namespace tutti
