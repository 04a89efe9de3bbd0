#pragma once
// Which steps took much longer than most, recognised as they end.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/step_history.h"

namespace deepcontext {

/// Changed under the lock of `Steps`; `seen` may be read by any thread.
class SlowSteps {
public:
  static constexpr double kFactor = 1.5;  // of the median of all steps so far
  static constexpr uint64_t kFewest = 16; // steps before the first one that is judged
  static constexpr size_t kKept = 64;

  void reset();
  /// The step has been added to the history.
  void add(const StepHistory::Step &step, const StepHistory &history);

  /// How many steps have ended, and how many slow ones, both modulo a power of two.
  struct Seen {
    uint32_t steps = 0;
    uint32_t slow = 0;
  };
  Seen seen() const {
    uint64_t both = seen_.load(std::memory_order_relaxed);
    return {static_cast<uint32_t>(both >> 32), static_cast<uint32_t>(both)};
  }

  /// A slow step.
  struct Slow {
    StepHistory::Step step; // duration 0: none
    uint32_t place = 0;     // number of steps up to it, as `Seen` counts them
    uint64_t work = 0;      // ticks, without waits for a processor, as sampled; 0: not known

    uint64_t known() const { return work ? work : step.duration; }
  };
  /// What is known about the slow steps.
  struct Facts {
    uint64_t count = 0;
    uint64_t total = 0;                // ticks
    std::array<Slow, kKept> slowest{}; // those that work longest, in no order
  };
  const Facts &facts() const { return facts_; }

  /// The main thread worked for these ticks while the steps after `first` ended, up to `last`: that
  /// is the work of the longest one of them, if it is slow. Both as in `Seen`.
  void noteWork(uint32_t first, uint32_t last, uint64_t work);

private:
  uint64_t steps_ = 0;
  uint64_t median_ = 0;
  uint64_t next_median_ = kFewest; // steps
  Facts facts_;
  std::atomic<uint64_t> seen_{0};
};

} // namespace deepcontext
