#pragma once
// What operators' inputs are, without shapes: a second observer for short windows.
#include <array>
#include <atomic>
#include <cstdint>

#include "abi/torch.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/recorder.h"
#include "torch/repeated_inputs.h"

namespace deepcontext::torch {

/// Adds an observer that asks for the inputs of operators, for some operators at a time.
///
/// Inputs cost time at each operator, and PyTorch's own sampling costs more than that
/// (docs/decisions/0091, 0097). In a window every operator counts the types of its inputs at its
/// node; see also `ignored_targets.h`, `padding.h` and `repeated_inputs.h`. Windows begin at the
/// end of an operator and close themselves at the beginning of one.
///
/// Invariant: no window opens once two threads have run operators of their own. After each change
/// of the list of observers every thread that runs operators takes PyTorch's lock of this list
/// once, and a child that another thread forks at that moment would wait for the lock forever.
class TypeWindows {
public:
  static TypeWindows &instance() {
    static TypeWindows *const windows = new TypeWindows();
    return *windows;
  }

  /// Open the first window soon. `layout`: of at::RecordFunction.
  void begin(const abi::RecordFunctionLayout &layout);
  /// Close the window; no other opens.
  void end();
  /// Called at the end of each operator. Any thread.
  static void tick(uint64_t now) {
    if (__builtin_expect(now >= next_.load(std::memory_order_relaxed), 0)) {
      instance().open(now);
    }
  }
  /// Called at the beginning of an operator in a window, after the node is open.
  void note(const void *record_function);
  Mutex &forkLock() { return mutex_; }

private:
  static constexpr uint64_t kNever = UINT64_MAX;
  /// What is counted: see FLOAT_INPUTS and the following in deepcontext/profiler/format/metric.py.
  enum Metric {
    kFloat,
    kFloat64,
    kFloat16,
    kBFloat16,
    kWidened,
    kInteger,
    kTargets,
    kIgnored,
    kPositions,
    kPadded,
    kShared,
    kCompared,
    kRepeated,
    kMetrics
  };

  void open(uint64_t now);
  void openLocked(uint64_t now, const Recorder *opener);
  /// No window opens again in this session.
  void endLocked();
  void close(uint64_t now);
  void closeLocked(uint64_t now);
  uint64_t toTicks(uint64_t ns) const {
    return static_cast<uint64_t>(static_cast<double>(ns) / clock_.nsPerTick());
  }

  static inline std::atomic<uint64_t> next_{kNever}; // ticks

  Mutex mutex_; // never held at a fork, nor is torch's own lock of its observers, then
  TickClock clock_;
  std::array<uint16_t, kMetrics> metrics_{};
  RepeatedInputs repeated_;
  int inputs_offset_ = -1;
  bool is_on_ = false;
  uint64_t random_ = 1;
  uint64_t handle_ = 0;                           // of the observer; 0: no window is open
  std::atomic<const Recorder *> opener_{nullptr}; // of the thread that opened the window
  std::atomic<int64_t> operators_left_{0};
  std::atomic<uint64_t> window_{0}; // number of the last window, from 1
  std::atomic<uint64_t> closes_{0}; // ticks
};

} // namespace deepcontext::torch
