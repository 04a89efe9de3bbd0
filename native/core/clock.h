#pragma once
// Cheap time stamps: the processor's constant-rate counter, converted to ns when the tree is read.
#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace deepcontext {

inline uint64_t toNs(const timespec &time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

/// Time of one of the system's clocks. Async-signal-safe.
inline uint64_t clockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return toNs(now);
}

inline uint64_t monotonicNs() {
  return clockNs(CLOCK_MONOTONIC);
}

/// One time stamp in ticks. 10 ns on x86 in a virtual machine, against 25-60 ns for clock_gettime.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return monotonicNs();
#endif
}

/// Computes the length of a tick from two readings of both clocks. Any thread.
class TickClock {
public:
  TickClock() : start_ticks_(ticks()), start_ns_(monotonicNs()) {}

  /// Nanoseconds a tick, over the time since construction; waits until that time is at least 1 ms,
  /// so that the clocks' jitter of 50 ns does not matter.
  double nsPerTick() const;
  /// Nanoseconds from construction to `time`; 0 for an earlier time.
  uint64_t nsSinceStart(uint64_t time) const {
    return time <= start_ticks_
               ? 0
               : static_cast<uint64_t>(static_cast<double>(time - start_ticks_) * nsPerTick());
  }

private:
  uint64_t start_ticks_;
  uint64_t start_ns_;
};

} // namespace deepcontext
