#pragma once
// A lock for critical sections of tens of nanoseconds.
#include <atomic>
#include <cstdint>

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
  /// For a thread that has just unlocked and will lock again: a thread that waits gets the lock
  /// first, unless it does not run for long.
  void letOthersGoFirst() {
    constexpr int kMostYields = 1024;
    uint32_t waiting = begun_waits_.load(std::memory_order_relaxed);
    for (int yields = 0; yields < kMostYields; ++yields) {
      if (static_cast<int32_t>(waiting - ended_waits_.load(std::memory_order_relaxed)) <= 0) {
        return;
      }
      sched_yield();
    }
  }
  void unlock() { is_held_.store(false, std::memory_order_release); }

private:
  __attribute__((noinline)) void wait() {
    constexpr int kTriesOnProcessor = 128;
    begun_waits_.fetch_add(1, std::memory_order_relaxed);
    for (int tries = 0;; ++tries) {
      if (!is_held_.load(std::memory_order_relaxed) &&
          !is_held_.exchange(true, std::memory_order_acquire)) {
        ended_waits_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      if (tries >= kTriesOnProcessor) {
        sched_yield();
      }
    }
  }

  std::atomic<bool> is_held_{false};
  std::atomic<uint32_t> begun_waits_{0};
  std::atomic<uint32_t> ended_waits_{0};
};

} // namespace deepcontext
