#pragma once
// Splits a thread's time between two samples into what its operators took, running and waiting.
#include <algorithm>
#include <cstdint>

namespace deepcontext {

/// Time in ns that is to be charged to the places where samples find the thread.
struct ChargedTime {
  uint64_t cpu_ns = 0;
  uint64_t wait_ns = 0;
};

/// Where a sample found the thread.
enum class SampleKind : uint8_t {
  kInOperator, // its time is the operator's; nothing is charged
  kRunning,
  kReady,   // not running, though it could: all processors are taken
  kWaiting, // for something else
};

/// Cumulative clocks of one thread at one moment.
struct ThreadClocks {
  uint64_t wall_ns = 0;
  uint64_t operator_ns = 0; // elapsed inside operators
  uint64_t cpu_ns = 0;
};

/// The accounts of one thread. Exact in the sum: elapsed time outside operators = what was charged
/// + `owed()`, always. Which place is charged is a matter of chance, and without bias: time that
/// the thread ran is charged where samples find it running, time that it waited where they find it
/// waiting, so that neither a short burst of work nor a short wait is put down to the other.
///
/// How much of the time outside operators was spent running is known exactly in an interval without
/// operators. With them, the processor's clock does not tell what was the operators' and bounds it
/// only: the sample's finding decides between the bounds.
class ThreadAccount {
public:
  explicit ThreadAccount(const ThreadClocks &start) : last_(start) {}

  ChargedTime charge(SampleKind kind, const ThreadClocks &now);
  /// What has been charged to nobody so far; nothing is owed afterwards.
  ChargedTime settle();
  const ThreadClocks &last() const { return last_; }

private:
  // A thread that is never found waiting, or never found running, owes no more than this. Where
  // there are more threads than processors, the sampler itself takes the processor of whom it looks
  // at: a place where a thread is ready then stands for where it runs.
  static constexpr uint32_t kMostSamples = 100;
  static constexpr uint32_t kMostSamplesReady = 4;

  ThreadClocks last_;
  int64_t other_ns_ = 0; // outside operators, not split yet; may be negative for a moment
  int64_t least_cpu_ns_ = 0;
  int64_t most_cpu_ns_ = 0;
  int64_t cpu_ns_ = 0; // split, to be charged
  int64_t wait_ns_ = 0;
  uint32_t samples_since_running_ = 0;
  uint32_t samples_since_waiting_ = 0;

  void split(bool is_running);
};

} // namespace deepcontext
