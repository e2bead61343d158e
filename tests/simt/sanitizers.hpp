#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
// The emulator itself is not instrumented then: what its fibres tell each other is no access of a kernel.
#if defined(TUTTI_SIMT_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace tutti::simt {

/// What the sanitizers must be told when a fibre goes on; nothing without them.
class SanitizerFibre {
 public:
  SanitizerFibre() = default;
  SanitizerFibre(const SanitizerFibre&) = delete;
  SanitizerFibre& operator=(const SanitizerFibre&) = delete;

#if defined(TUTTI_SIMT_THREAD_SANITIZER)
  ~SanitizerFibre() {
    if (owned_) __tsan_destroy_fiber(fibre_);
  }

  void begin(void* /*stack*/, std::size_t /*bytes*/) {
    fibre_ = __tsan_create_fiber(0);
    owned_ = true;
  }

  /// The scheduler's own.
  void is_current() {
    fibre_ = __tsan_get_current_fiber();
  }

  /// A switch orders nothing: only barriers do.
  void leave(SanitizerFibre& next) {
    __tsan_switch_to_fiber(next.fibre_, __tsan_switch_to_fiber_no_sync);
  }

  void leave_for_good(SanitizerFibre& next) {
    leave(next);
  }

  void arrived() {}

  static void release(void* barrier) {
    __tsan_release(barrier);
  }

  static void acquire(void* barrier) {
    __tsan_acquire(barrier);
  }

 private:
  void* fibre_ = nullptr;
  bool owned_ = false;
#elif defined(__SANITIZE_ADDRESS__)
  void begin(void* stack, std::size_t bytes) {
    stack_ = stack;
    bytes_ = bytes;
  }

  void is_current() {}

  void leave(SanitizerFibre& next) {
    __sanitizer_start_switch_fiber(&fake_, next.stack_, next.bytes_);
    next.from_ = this;
  }

  void leave_for_good(SanitizerFibre& next) {
    __sanitizer_start_switch_fiber(nullptr, next.stack_, next.bytes_);
    next.from_ = this;
  }

  void arrived() {
    const void* stack = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_, &stack, &bytes);
    if (from_ == nullptr || from_->stack_ != nullptr) return;
    from_->stack_ = stack;  // the scheduler's, which nobody else knows
    from_->bytes_ = bytes;
  }

  static void release(void* /*barrier*/) {}

  static void acquire(void* /*barrier*/) {}

 private:
  void* fake_ = nullptr;
  const void* stack_ = nullptr;
  std::size_t bytes_ = 0;
  SanitizerFibre* from_ = nullptr;
#else
  void begin(void* /*stack*/, std::size_t /*bytes*/) {}

  void is_current() {}

  void leave(SanitizerFibre& /*next*/) {}

  void leave_for_good(SanitizerFibre& /*next*/) {}

  void arrived() {}

  static void release(void* /*barrier*/) {}

  static void acquire(void* /*barrier*/) {}
#endif
};

}  // namespace tutti::simt
