#pragma once
// A lock for critical sections of tens of nanoseconds.
#include <atomic>

#include <sched.h>

namespace deepcontext {

/// Costs one atomic exchange when it is free, half of std::mutex. A thread that waits long yields,
/// so that a holder that lost the processor can continue.
class SpinLock {
public:
  void lock() {
    if (__builtin_expect(is_held_.exchange(true, std::memory_order_acquire), 0)) {
      wait();
    }
  }
  /// For threads that must not wait: false when the lock is still held after some hundred looks.
  bool tryLock() {
    constexpr int kMostTries = 256;
    for (int tries = 0; tries < kMostTries; ++tries) {
      if (!is_held_.load(std::memory_order_relaxed) &&
          !is_held_.exchange(true, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
  void unlock() { is_held_.store(false, std::memory_order_release); }

private:
  __attribute__((noinline)) void wait() {
    constexpr int kTriesOnProcessor = 128;
    for (int tries = 0;; ++tries) {
      if (!is_held_.load(std::memory_order_relaxed) &&
          !is_held_.exchange(true, std::memory_order_acquire)) {
        return;
      }
      if (tries >= kTriesOnProcessor) {
        sched_yield();
      }
    }
  }

  std::atomic<bool> is_held_{false};
};

} // namespace deepcontext
