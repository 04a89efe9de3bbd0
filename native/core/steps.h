#pragma once
// The steps of the program's main loop: what ends them, their number and their durations.
#include <array>
#include <atomic>
#include <cstdint>

#include "core/metric_row.h"
#include "core/spin_lock.h"
#include "core/thread_tree.h"

namespace deepcontext {

/// What ends a step; a later one takes the place of an earlier one, whose steps are forgotten.
enum class StepSource : uint8_t { kNone, kProgram, kModule, kEngine, kOptimizer, kMark };

/// What ends steps in the running program.
struct StepEnd {
  StepSource source = StepSource::kNone;
  uint32_t recorder = 0;
  const Node *node = nullptr; // null for marks
};

/// What is known about the steps of a session.
struct StepsSeen {
  StepEnd end;
  uint64_t count = 0;
  MetricValues durations; // ticks between the ends of two steps
};

/// Counts and times steps. Any thread; a spin lock is taken when a step ends, not at operators.
///
/// Several places may end steps: two optimizers of one loop, or threads that step side by side. The
/// place that has ended most of them counts: a step ends when a place ends for one time more than
/// any has before.
class Steps {
public:
  static Steps &instance() {
    static Steps *const steps = new Steps();
    return *steps;
  }

  /// Begin a session without steps.
  void begin();
  /// In a forked child, where a holder of the lock does not exist.
  void abandonInChild();

  /// `end` has ended a step for the `calls`-th time, at `now` in ticks.
  void pass(const StepEnd &end, uint64_t calls, uint64_t now) {
    if (end.source >= source()) {
      count(end, calls, now);
    }
  }
  /// The calling thread marks the end of a step.
  void mark(uint64_t now);
  /// A call of a compiled program has ended, at `now`, after `ticks`. The program that takes the
  /// most time ends steps.
  void passProgram(const StepEnd &end, uint64_t calls, uint64_t ticks, uint64_t now);
  /// Whether the first operator of a module may end steps: not once something better does.
  bool wantsModules() const { return source() <= StepSource::kModule; }

  StepsSeen read() const;

private:
  // After this many steps of a program, another one does not take its place.
  static constexpr uint64_t kProgramIsKnown = 64;

  StepSource source() const { return source_.load(std::memory_order_relaxed); }
  void count(const StepEnd &end, uint64_t calls, uint64_t now);
  void restart(const StepEnd &end);

  struct Program {
    const Node *node = nullptr;
    uint64_t count = 0; // ticks
  };
  struct Marks {
    int thread = 0;
    uint64_t count = 0;
  };

  mutable SpinLock lock_; // of everything below but the two atomics
  std::atomic<StepSource> source_{StepSource::kNone};
  std::atomic<const Node *> program_{nullptr}; // the one with the most time, once it is known
  StepEnd end_;
  uint64_t count_ = 0;
  uint64_t most_calls_ = 0;
  uint64_t last_ticks_ = 0; // end of the last step; 0: none
  MetricRow durations_;
  std::array<Program, 16> programs_;
  std::array<Marks, 64> marks_;
};

} // namespace deepcontext
