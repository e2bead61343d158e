#include "base/log.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/error.hpp"
#include "base/host.hpp"
#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::base;

namespace {

/// What `act` writes to standard error.
template <class Act>
std::string written(const Act& act) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const int saved = dup(2);
  REQUIRE(dup2(ends[1], 2) == 2);
  close(ends[1]);
  act();
  dup2(saved, 2);
  close(saved);
  std::string text;
  std::array<char, 256> chunk{};
  for (ssize_t n; (n = read(ends[0], chunk.data(), chunk.size())) > 0;)
    text.append(chunk.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  return text;
}

}  // namespace

TEST_CASE("the log writes whole lines with rank and level, up to its level") {
  const Log log(Level::warning, "rank 3 of 8, host");
  CHECK(log.shows(Level::error));
  CHECK_FALSE(log.shows(Level::info));
  CHECK(written([&] {
          log(Level::warning, "{} of {}", 1, 2);
          log(Level::info, "not shown");
          log(Level::error, "last");
        }) == "tutti [rank 3 of 8, host] warning: 1 of 2\ntutti [rank 3 of 8, host] error: last\n");
}

TEST_CASE("levels have names, others are refused with the names that there are") {
  CHECK(level_from("error") == Level::error);
  CHECK(level_from("warning") == Level::warning);
  CHECK(level_from("info") == Level::info);
  CHECK(level_from("debug") == Level::debug);
  CHECK_THROWS_AS(level_from("loud"), InvalidArgument);
  CHECK_THROWS_WITH(level_from("loud"), ContainsSubstring("'loud'") && ContainsSubstring("warning"));
}

TEST_CASE("errors of the operating system keep their number, and hosts their name") {
  CHECK_THAT(errno_text(ENOENT), ContainsSubstring("No such file") && ContainsSubstring("errno 2"));
  CHECK(process_id() == getpid());
  CHECK_FALSE(host_name().empty());
}
