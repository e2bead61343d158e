#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace tutti::base {

/// A link that is made slower than it is: see transport/shaped.hpp.
struct LinkShape {
  double bytes_per_second = 0;  ///< of Ethernet frames, as an interface counts them
  Seconds delay{0};             ///< from the last byte on the wire to the message there
  Seconds jitter{0};            ///< up to so much more, by chance; messages stay in order
  std::uint64_t burst = 0;      ///< bytes that pass at once after a pause
  std::uint64_t seed = 1;       ///< of the jitter
  std::string text = {};        ///< as it was written
};

/// "RATE[,DELAY][,jitter=TIME][,burst=BYTES][,seed=NUMBER]", such as "100mbit,1ms,burst=128K". Throws
/// InvalidArgument naming `what`, the part that is wrong and what is expected.
LinkShape parse_link(std::string_view text, std::string_view what);

/// "50us", "1ms", "0.5s". Throws InvalidArgument naming `what`.
Seconds parse_time(std::string_view text, std::string_view what);

}  // namespace tutti::base
