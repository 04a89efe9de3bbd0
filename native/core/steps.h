#pragma once
// The steps of the program's main loop: what ends them, their number and their durations.
#include <array>
#include <atomic>
#include <cstdint>

#include "core/metric_row.h"
#include "core/slow_steps.h"
#include "core/spin_lock.h"
#include "core/step_history.h"
#include "core/thread_tree.h"

namespace deepcontext {

/// What ends a step; a later one takes the place of an earlier one, whose steps are forgotten.
enum class StepSource : uint8_t { kNone, kProgram, kModule, kEngine, kOptimizer, kMark };

/// What ends steps in the running program.
struct StepEnd {
  StepSource source = StepSource::kNone;
  uint32_t thread = 0;        // a number that no other thread of this source has
  const Node *node = nullptr; // null for marks
};

/// What is known about the steps of a session.
struct StepsSeen {
  StepEnd end;
  uint64_t count = 0;
  MetricValues durations; // ticks between the ends of two steps
};

/// The steps at the moment of a cut.
struct StepsCut {
  uint64_t epoch = 0; // of the count, which begins anew when something better ends steps
  uint64_t count = 0;
  uint64_t ended_ticks = 0; // when the last one ended
  MetricValues durations;   // of those that ended since the last cut
};

/// Counts and times steps. Any thread; a spin lock is taken when a step ends, not at operators.
///
/// Several places of a thread may end steps, such as two optimizers in one loop, or two loops. One
/// of them leads and counts; another one takes its place by ending two steps in a row. Threads may
/// step side by side: the thread with the most steps counts.
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

  /// `end` has ended a step at `now`, in ticks. `is_kept`: the program wants its spans.
  void pass(const StepEnd &end, uint64_t now, bool is_kept = false) {
    if (end.source >= source()) {
      count(end, now, is_kept);
    }
  }
  /// A call of a compiled program has ended, at `now`, after `ticks`. The program that takes the
  /// most time ends steps.
  void passProgram(const StepEnd &end, uint64_t ticks, uint64_t now);
  /// Whether the first operator of a module may end steps: not once something better does.
  bool wantsModules() const { return source() <= StepSource::kModule; }

  StepsSeen read() const;
  /// `epoch`: of the count, as in StepsCut.
  StepHistory history(uint64_t *epoch = nullptr) const;
  SlowSteps::Facts slowSteps() const;
  /// See SlowSteps.
  void noteWorkOfSlowStep(uint32_t first, uint32_t last, uint64_t work);
  /// Without the lock.
  SlowSteps::Seen slowStepsSeen() const { return slow_.seen(); }

  // -- cuts of the run into windows
  /// From now on, the first step asks for a cut; or no step does.
  void startCuts();
  void stopCuts();
  StepsCut cut();
  /// Ask for the cut after `last`, at the first step that ends after `ticks`.
  void wantNextCut(const StepsCut &last, uint64_t ticks);
  /// Whether a cut is due; true once for each that is asked for.
  bool takeDueCut() { return is_cut_due_.exchange(false); }

  // -- copies of the spans of chosen steps
  /// From now on, or no longer, ask for a copy when a step is chosen.
  void wantCopies(bool are_wanted);
  /// Whether a copy is due; true once for each time that is asked for.
  bool takeDueCopy() { return is_copy_due_.exchange(false); }
  /// No copy before `ticks`.
  void pauseCopies(uint64_t ticks);
  /// Ask for a copy, or, during a pause, let the next step do so.
  void askForCopy(uint64_t now);

  /// Changes at each `wakeCutter`, which a due cut or copy calls (futex).
  std::atomic<uint32_t> &wakings() { return wakings_; }
  void wakeCutter();

private:
  // After this many steps of a program, another one does not take its place.
  static constexpr uint64_t kProgramIsKnown = 64;

  StepSource source() const { return source_.load(std::memory_order_relaxed); }
  struct Stepper;
  void count(const StepEnd &end, uint64_t now, bool is_kept);
  bool countLocked(const StepEnd &end, uint64_t now, bool is_kept);
  void add(Stepper *stepper, uint64_t now, bool is_kept);
  bool isCutDue(uint64_t now);
  bool isCopyDue(uint64_t now);
  void restart(const StepEnd &end);

  struct Program {
    const Node *node = nullptr;
    uint64_t count = 0; // ticks
  };
  /// A thread that ends steps.
  struct Stepper {
    uint64_t count = 0; // of its steps; 0: none
    uint32_t thread = 0;
    const Node *leader = nullptr;
    const Node *other = nullptr; // has ended the last step, and is not the leader
    uint64_t other_ticks = 0;
  };

  mutable SpinLock lock_; // of everything below but the two atomics
  std::atomic<StepSource> source_{StepSource::kNone};
  std::atomic<const Node *> program_{nullptr}; // the one with the most time, once it is known
  StepEnd end_;
  uint64_t count_ = 0;
  uint64_t last_ticks_ = 0; // end of the last step; 0: none
  MetricRow durations_;
  StepHistory history_;
  SlowSteps slow_;
  MetricRow cut_durations_; // since the last cut
  uint64_t epoch_ = 0;
  bool are_cuts_wanted_ = false;
  uint64_t cut_step_ = UINT64_MAX; // of the next cut
  uint64_t cut_ticks_ = 0;
  std::atomic<bool> is_cut_due_{false};
  bool are_copies_wanted_ = false;
  bool is_copy_asked_ = false;
  uint64_t copy_ticks_ = 0; // no copy before
  std::atomic<bool> is_copy_due_{false};
  std::atomic<uint32_t> wakings_{0};
  std::array<Program, 16> programs_;
  std::array<Stepper, 64> steppers_;
};

} // namespace deepcontext
