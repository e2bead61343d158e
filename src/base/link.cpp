#include "base/link.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/options.hpp"

namespace tutti::base {

Seconds parse_time(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const double scale = unit == "us" ? 1e-6 : unit == "ms" ? 1e-3 : unit == "s" ? 1.0 : 0.0;
  require(error == std::errc() && scale > 0 && value >= 0 && value * scale <= 60,
          "{}='{}': expected a time up to a minute such as 50us, 1ms or 0.5s", what, text);
  return Seconds(value * scale);
}

LinkShape parse_link(std::string_view text, std::string_view what) {
  LinkShape link{.text = std::string(text)};
  std::string_view rest = text;
  bool more = true;
  for (std::size_t place = 0; more; ++place) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
    const std::size_t equals = part.find('=');
    const std::string_view name = equals == part.npos ? "" : part.substr(0, equals);
    const std::string_view value = equals == part.npos ? part : part.substr(equals + 1);
    if (place == 0) {
      link.bytes_per_second = parse_rate(part, what);
    } else if (name == "jitter") {
      link.jitter = parse_time(value, what);
    } else if (name == "burst") {
      link.burst = parse_bytes(value, what);
    } else if (name == "seed") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), link.seed);
      require(error == std::errc() && end == value.data() + value.size(),
              "{}='{}': seed '{}': expected a whole number", what, text, value);
    } else if (name.empty() && place == 1) {
      link.delay = parse_time(part, what);
    } else {
      fail<InvalidArgument>("{}='{}': '{}': expected RATE[,DELAY][,jitter=TIME][,burst=BYTES][,seed=NUMBER]",
                            what, text, part);
    }
  }
  return link;
}

}  // namespace tutti::base
