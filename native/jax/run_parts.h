#pragma once
// Estimates for programs whose runs do not fit into a window: from the parts that windows saw. Not
// thread-safe.
#include <cstdint>
#include <map>
#include <vector>

#include "jax/device_waits.h"
#include "jax/program.h"
#include "jax/run_totals.h"
#include "jax/xspace.h"

namespace deepcontext::jax {

/// A window sees a part of a long run. The part stands for itself and, at each end that the window
/// cut, for half of the time to the next or the last window: between two windows with parts of one
/// run this is all of the time between them. Where no part follows, the program was still running
/// for as long as the process waited for the device, or until the middle if it did not wait.
class RunParts {
public:
  /// Call before the parts of a window are added.
  void beginWindow(const TraceWindow &window);
  /// Call after them, with the waits for the device so far.
  void endWindow(const TraceWindow &window, const DeviceWaits &waits);
  /// Add what the window saw of a run; `is_launched_inside` when the window saw its launch.
  void add(const Program &program, const Run &run, const TraceWindow &window,
           bool is_launched_inside);
  /// Forget a program: enough of its runs were seen whole.
  void drop(uint32_t program);

  struct Sum {
    RunTotals totals;      // over all launches of the program
    double longest_ns = 0; // operations of the longest part, as it was seen
  };
  /// Sums by program, with runs cut now counted to `now_ns`.
  std::map<uint32_t, Sum> sums(uint64_t now_ns, const DeviceWaits &waits) const;

private:
  /// A part whose run was going on when its window closed.
  struct Open {
    uint32_t program = 0;
    int64_t run_id = 0;
    uint64_t seen_ns = 0;
    RunTotals part;
    bool is_seen_again = false;
  };

  void extend(const std::vector<Open> &open, uint64_t now_ns, const DeviceWaits &waits,
              std::map<uint32_t, Sum> *sums) const;

  std::map<uint32_t, Sum> sums_;
  std::vector<Open> open_;
  uint64_t last_end_ns_ = 0; // of the last window; 0 before the first
  uint64_t gap_ns_ = 0;      // from there to the window that is being added
  std::vector<Open> before_; // what was open when it began
};

} // namespace deepcontext::jax
