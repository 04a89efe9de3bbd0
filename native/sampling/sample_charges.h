#pragma once
// Charges a thread's time to the places where samples find it.
#include <array>
#include <cstdint>

#include "sampling/context_tree.h"
#include "sampling/kernel_threads.h"
#include "sampling/sample_detail.h"
#include "sampling/sampled_thread.h"
#include "sampling/slow_step_samples.h"

namespace deepcontext {

/// Writes the sampler's metrics into its tree. `ThreadAccount` decides which time is charged,
/// `PerfCounters` which counts. Sampler's thread, or the thread that ended it.
class SampleCharges {
public:
  SampleCharges();

  ContextTree &tree() { return tree_; }
  /// The thread as a whole.
  Node *nodeOf(const SampledThread &thread) {
    return tree_.thread(thread.recorder, thread.name, thread.serial);
  }

  /// A sample found the thread at `place`, which is an operator if the kind says so.
  void charge(SampledThread &thread, Node *place, SampleKind kind, const ThreadClocks &now,
              SampleDetail detail);
  /// Before `charge` with the same: the part of the time inside operators in which the main thread
  /// was ready and had no processor. Opens a descriptor.
  void chargeReady(const KernelThreads &kernel, SampledThread &thread, Node *place, SampleKind kind,
                   const ThreadClocks &now);
  void chargeCounters(SampledThread &thread, Node *place, bool is_waiting);
  /// Charge processor time of a thread whose place is unknown.
  void chargeWhole(const SampledThread &thread, uint64_t cpu_ns);
  /// Charge what is owed, because no further sample of the thread will come.
  void settle(SampledThread &thread);

private:
  static bool isOfCollectives(const SampledThread &thread);
  static bool waitsForRanks(const SampledThread &thread, SampleKind kind, SampleDetail detail);
  static void addToStretch(const SampledThread &thread, Node *place, SampleKind kind,
                           uint64_t elapsed_ns);
  void add(Node *place, ChargedTime time, SampleKind kind, SampleDetail detail);

  void addToStep(const SampledThread &thread, Node *place, SampleKind kind, const ThreadClocks &now,
                 SampleDetail detail);

  ContextTree tree_;
  SlowStepSamples slow_steps_;
  uint16_t cpu_metric_, wait_metric_, gil_metric_, ready_metric_, step_metric_, operators_metric_;
  uint16_t operator_ready_metric_;
  std::array<uint16_t, kSampleDetails> waits_; // by detail; 0 where a detail has no metric
};

} // namespace deepcontext
