#include "base/link.hpp"

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::base;

TEST_CASE("times have units") {
  CHECK(parse_time("50us", "x").count() == Approx(50e-6));
  CHECK(parse_time("1.5ms", "x").count() == Approx(1.5e-3));
  CHECK(parse_time("0s", "x").count() == 0);
  for (const char* bad : {"", "1", "ms", "-1ms", "1m", "1ns", "61s", "1ms ", "inf", "nans"})
    CHECK_THROWS_WITH(parse_time(bad, "--x"), ContainsSubstring("--x='" + std::string(bad) + "'"));
}

TEST_CASE("a link has a rate, and may have a delay, jitter, a burst and a seed") {
  const LinkShape plain = parse_link("100mbit", "--link");
  CHECK(plain.bytes_per_second == 12.5e6);
  CHECK(plain.delay.count() == 0);
  CHECK(plain.jitter.count() == 0);
  CHECK(plain.burst == 0);
  CHECK(plain.seed == 1);
  CHECK(plain.text == "100mbit");
  const LinkShape all = parse_link("2.5gbit,1ms,burst=128K,seed=9,jitter=20us", "--link");
  CHECK(all.bytes_per_second == 312.5e6);
  CHECK(all.delay.count() == Approx(1e-3));
  CHECK(all.jitter.count() == Approx(20e-6));
  CHECK(all.burst == 131072);
  CHECK(all.seed == 9);
  CHECK(parse_link("1gbit,jitter=1ms", "--link").delay.count() == 0);
  for (const char* bad : {"", ",1ms", "fast", "1gbit,", "1gbit,1ms,2ms", "1gbit,burst=1ms", "1gbit,delay=1ms",
                          "1gbit,jitter=1", "1gbit,seed=x", "1gbit,seed=", "1ms", "1gbit,,1ms"})
    CHECK_THROWS_WITH(parse_link(bad, "--link"), ContainsSubstring("--link="));
  CHECK_THROWS_WITH(parse_link("1gbit,1ms,2ms", "--link"),
                    ContainsSubstring("'2ms'") && ContainsSubstring("expected RATE[,DELAY]"));
}
