#pragma once

#include <chrono>

namespace tutti {

/// Time is always an argument: nothing above base asks the operating system for it.
using Seconds = std::chrono::duration<double>;

namespace base {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  /// Time since an arbitrary, fixed moment; never goes backwards.
  virtual Seconds now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  Seconds now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

}  // namespace base
}  // namespace tutti
