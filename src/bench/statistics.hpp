#pragma once

#include <span>
#include <vector>

namespace tutti::bench {

/// Of samples in seconds.
struct Spread {
  double p1 = 0;
  double p25 = 0;
  double median = 0;
  double p75 = 0;
  double p99 = 0;

  /// Half of the samples differ by more than this part of the median.
  double width() const { return median > 0 ? (p75 - p25) / median : 0; }
};

/// Sample number q (0 to 1) of the sorted ones, between two of them in proportion. Of none: 0.
double percentile(std::span<const double> sorted, double q);
Spread spread_of(std::vector<double> samples);
/// Of positive numbers; of none: 1.
double geometric_mean(std::span<const double> values);

}  // namespace tutti::bench
