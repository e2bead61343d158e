#pragma once

namespace tutti::tools {

/// Holds SIGTERM back in this thread (and those made from it later) and tells when one has come. The second
/// one ends the process at once. Make it before other threads exist.
class StopSignal {
 public:
  /// Throws SystemError if the operating system refuses.
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  /// True from the first SIGTERM on.
  bool requested();

 private:
  int descriptor_ = -1;
  bool requested_ = false;
};

}  // namespace tutti::tools
