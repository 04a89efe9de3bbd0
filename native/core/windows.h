#pragma once
// The run cut into consecutive windows at steps, each with the sums of all nodes in it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/recorder.h"
#include "core/steps.h"
#include "core/sums.h"

namespace deepcontext {

/// A part of the run between two cuts.
struct Window {
  uint64_t first_step = 0; // steps that had ended when it began
  uint64_t end_step = 0;   // and when it ended
  uint64_t begin_ticks = 0;
  uint64_t end_ticks = 0;
  uint64_t cpu_user_ns = 0; // of the process
  uint64_t cpu_system_ns = 0;
  MetricValues durations;              // ticks of the steps that ended in it
  std::map<uint32_t, PackedSums> sums; // by recorder; see Windows::kMemory

  uint64_t steps() const { return end_step - first_step; }
  size_t bytes() const;
  /// Add the window that follows this one.
  void append(const Window &next);
};

/// What cutting has cost, and how exact it is.
struct CutCosts {
  uint64_t cuts = 0;
  uint64_t cpu_ns = 0;
  uint64_t most_cpu_ns = 0;    // of one cut
  uint64_t most_lag_ticks = 0; // from the end of a step to the end of the copy
  uint64_t nodes = 0;          // at the last cut
};

/// The windows of a session, up to the last cut; what follows is in no window. Their number and
/// their bytes are bounded: neighbours are joined when either reaches its limit.
///
/// Windows follow each other: the first ends with the first step (set-up), the next have 1, 2, 4
/// and 8 steps (warm-up), the others an equal number, which doubles when neighbours are joined. A
/// copy of the sums is taken at a step, asynchronously, and subtracted from the copy before. Any
/// thread; the mutex is held while a cut copies, some milliseconds, so the GIL is not waited for.
class Windows {
public:
  static constexpr size_t kMostWindows = 24;
  static constexpr size_t kMostBytes = 64 << 20;
  static constexpr size_t kFirstEqual = 5; // windows before are of set-up and warm-up
  /// In place of a recorder: allocations, whose nodes are sites of the ledger.
  static constexpr uint32_t kMemory = UINT32_MAX;

  static Windows &instance() {
    static Windows *const windows = new Windows();
    return *windows;
  }

  /// Begin a session; `metrics`: names of the metrics that add up.
  void begin(std::vector<std::string> metrics);
  /// End what is going on: no more cuts.
  void end();
  bool isOn() const { return is_on_.load(std::memory_order_relaxed); }
  /// Copy the sums now, where the running session has windows.
  void cut();

  struct Reading {
    std::vector<Window> windows;
    uint64_t begin_ticks = 0;
    CutCosts costs;
  };
  Reading read() const;
  Mutex &forkLock() { return mutex_; }

private:
  // A cut takes at most 1/400 of the time to the next one, and comes at most this often.
  static constexpr uint64_t kShare = 400;
  // All cuts together take at most this part of the process's processor time, or come less often.
  static constexpr uint64_t kCpuShare = 200;
  static constexpr uint64_t kLeastNs = 20'000'000;

  std::map<uint32_t, Sums> copy();
  void add(Window window);
  void joinNeighbours();
  const std::vector<bool> &wanted();
  size_t bytes() const;

  mutable Mutex mutex_; // of everything below
  std::atomic<bool> is_on_{false};
  std::vector<std::string> metrics_;
  std::vector<bool> wants_; // by MetricRegistry id
  std::map<uint32_t, Sums> last_;
  std::vector<Window> windows_;
  Window next_;               // its beginning
  uint64_t begun_cpu_ns_ = 0; // processor time of the process at the beginning
  uint64_t equal_steps_ = 1;
  uint64_t epoch_ = 0;
  CutCosts costs_;
};

} // namespace deepcontext
