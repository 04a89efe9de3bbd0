#pragma once
// Splits a thread's time between two samples into operators, running and waiting.
#include <cstdint>

namespace deepcontext {

/// Time in ns to charge to the place where a sample finds the thread.
struct ChargedTime {
  uint64_t cpu_ns = 0;
  uint64_t wait_ns = 0;
};

/// Where a sample found the thread.
enum class SampleKind : uint8_t {
  kInOperator, // its time is the operator's; nothing is charged
  kRunning,
  kReady,   // not running, but ready: all processors are in use
  kWaiting, // for something else
};

/// Cumulative clocks of one thread at one moment.
struct ThreadClocks {
  uint64_t wall_ns = 0;
  uint64_t operator_ns = 0; // elapsed inside operators
  uint64_t cpu_ns = 0;
};

/// The account of one thread. The sum is exact: elapsed time outside operators = charged time +
/// `owed()`, always. The place is random but unbiased: running time is charged where samples find
/// the thread running, waiting time where they find it waiting, so that neither a short burst of
/// work nor a short wait is charged to the other.
///
/// In an interval without operators the time spent running is exact. In one with operators the
/// processor clock includes their time and gives only bounds; whether the sample found the thread
/// running decides between the bounds.
class ThreadAccount {
public:
  explicit ThreadAccount(const ThreadClocks &start) : last_(start) {}

  ChargedTime charge(SampleKind kind, const ThreadClocks &now);
  /// Take the time that has not been charged; nothing is owed afterwards.
  ChargedTime settle();
  const ThreadClocks &last() const { return last_; }

private:
  // A thread that is never found waiting, or never found running, owes no more than this. With more
  // threads than processors, the sampler takes the processor from the sampled thread: then a place
  // where the thread is ready stands for where it runs.
  static constexpr uint32_t kMostSamples = 100;
  static constexpr uint32_t kMostSamplesReady = 4;

  ThreadClocks last_;
  int64_t other_ns_ = 0; // outside operators, not split yet; may be negative briefly
  int64_t least_cpu_ns_ = 0;
  int64_t most_cpu_ns_ = 0;
  int64_t cpu_ns_ = 0; // split, to be charged
  int64_t wait_ns_ = 0;
  uint32_t samples_since_running_ = 0;
  uint32_t samples_since_waiting_ = 0;

  void split(bool is_running);
};

} // namespace deepcontext
