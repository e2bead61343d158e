#include "base/options.hpp"

#include <cstdlib>

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::base;

namespace {

/// Sets a variable for the life of the object. Tests only: the library never writes the environment.
struct Variable {
  const char* name;

  Variable(const char* n, const char* value) : name(n) { setenv(n, value, 1); }

  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  ~Variable() { unsetenv(name); }
};

}  // namespace

TEST_CASE("byte sizes accept the usual units") {
  CHECK(parse_bytes("0", "x") == 0);
  CHECK(parse_bytes("65536", "x") == 65536);
  CHECK(parse_bytes("64K", "x") == 65536);
  CHECK(parse_bytes("64kB", "x") == 65536);
  CHECK(parse_bytes("4M", "x") == 4U << 20U);
  CHECK(parse_bytes("1GiB", "x") == 1ULL << 30U);
  CHECK(parse_bytes("2t", "x") == 2ULL << 40U);
  for (const char* bad : {"", "k", "-1", "4X", "4Mx", "1.5M", "99999999999T"}) {
    CHECK_THROWS_AS(parse_bytes(bad, "size"), InvalidArgument);
  }
  CHECK_THROWS_WITH(parse_bytes("4X", "TUTTI_SEGMENT_BYTES"), ContainsSubstring("TUTTI_SEGMENT_BYTES='4X'"));
}

TEST_CASE("core options come from the environment and bad values are named") {
  {
    const Variable order("TUTTI_ORDER", "any");
    const Variable segment("TUTTI_SEGMENT_BYTES", "64K");
    const Variable flight("TUTTI_SEGMENTS_IN_FLIGHT", "3");
    const Variable timeout("TUTTI_TIMEOUT", "2.5");
    const auto options = CoreOptions::from_environment();
    CHECK(options.any_order);
    CHECK(options.segment_bytes == 65536);
    CHECK(options.segments_in_flight == 3);
    CHECK(options.timeout.count() == 2.5);
  }
  const auto rejects = [](const char* name, const char* value) {
    const Variable variable(name, value);
    CHECK_THROWS_WITH(CoreOptions::from_environment(),
                      ContainsSubstring(std::string(name) + "='" + value + "'"));
  };
  rejects("TUTTI_ORDER", "random");
  rejects("TUTTI_SEGMENT_BYTES", "some");
  rejects("TUTTI_MESSAGE_BYTES", "0");
  rejects("TUTTI_SEGMENTS_IN_FLIGHT", "65");
  rejects("TUTTI_SHARED_MEMORY", "yes");
  rejects("TUTTI_SHARED_CELL", "100");
  rejects("TUTTI_SHARED_LIMIT", "much");
  rejects("TUTTI_SEGMENTS_IN_FLIGHT", "many");
  rejects("TUTTI_TIMEOUT", "-1");
  rejects("TUTTI_TIMEOUT", "soon");
  rejects("TUTTI_LINK", "fast");
  rejects("TUTTI_LOG", "loud");
}

TEST_CASE("a launcher of another MPI library is found out") {
  const LaunchHint hint{"Open MPI", 2, 4};
  CHECK_NOTHROW(require_same_size(hint, 4, "Open MPI v4"));
  CHECK_NOTHROW(require_same_size({}, 1, "Open MPI v4"));
  CHECK_THROWS_WITH(require_same_size(hint, 1, "MPICH 4.0.2"),
                    ContainsSubstring("started 4 processes") && ContainsSubstring("MPICH 4.0.2"));
}
