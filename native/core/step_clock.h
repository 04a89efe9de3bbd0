#pragma once
// How many steps of the program's main loop have passed, to record when a sample was taken.
#include <atomic>
#include <cstdint>

namespace deepcontext {

/// A step begins with each step of an optimizer and ends with each mark of the program, so that the
/// count rises by one or more a step. Any thread; async-signal-safe.
class StepClock {
public:
  static void begin() { steps_.store(0, std::memory_order_relaxed); }
  static void tick() { steps_.fetch_add(1, std::memory_order_relaxed); }
  static uint64_t now() { return steps_.load(std::memory_order_relaxed); }

private:
  static inline std::atomic<uint64_t> steps_{0};
};

} // namespace deepcontext
