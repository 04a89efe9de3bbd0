#pragma once
// What a thread has spent, below the place where a sample finds it.
#include <cstdint>

#include "sampling/context_tree.h"
#include "sampling/sampled_thread.h"

namespace deepcontext {

/// Writes the sampler's metrics into its tree. Which time is charged is up to `ThreadAccount`,
/// which counts to `PerfCounters`. Sampler's thread, or whoever ended it.
class SampleCharges {
public:
  SampleCharges();

  ContextTree &tree() { return tree_; }
  /// The thread as a whole.
  Node *nodeOf(const SampledThread &thread) {
    return tree_.thread(thread.recorder, thread.name, thread.serial);
  }

  /// A sample found the thread at `place`. `is_about_gil`: it has the GIL, or waits for it.
  void charge(SampledThread &thread, Node *place, SampleKind kind, const ThreadClocks &now,
              bool is_about_gil);
  void chargeCounters(SampledThread &thread, Node *place, bool is_waiting);
  /// Processor time of a thread of which no more is known.
  void chargeWhole(const SampledThread &thread, uint64_t cpu_ns);
  /// Charge what is owed: no sample of the thread will come.
  void settle(SampledThread &thread);

private:
  void add(Node *place, ChargedTime time, SampleKind kind, bool is_about_gil);

  ContextTree tree_;
  uint16_t cpu_metric_, wait_metric_, gil_metric_, gil_wait_metric_, ready_metric_;
};

} // namespace deepcontext
