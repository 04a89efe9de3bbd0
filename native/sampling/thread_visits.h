#pragma once
// The sampler's visits to single threads.
#include <Python.h>

#include <cstdint>
#include <memory>

#include "core/call_filters.h"
#include "sampling/counted_threads.h"
#include "sampling/gil_futex.h"
#include "sampling/kernel_threads.h"
#include "sampling/native_callees.h"
#include "sampling/remote_context.h"
#include "sampling/sample_charges.h"
#include "sampling/sampled_thread.h"
#include "sampling/sampler_counts.h"
#include "sampling/senses.h"
#include "sampling/slot_pool.h"

namespace deepcontext {

/// Parts that the visits of all sessions share.
struct VisitParts {
  const GilFutex &gil;
  SlotPool &slots;
  CountedThreads &counted;
  SamplerCounts &counts;
  const MemoryReader &handlers_memory; // used by signal handlers
};

/// Finds out where a thread is and charges its time. A thread that has used no processor time since
/// the last visit is at the same place. A running thread is asked by a signal, which its handler
/// answers with its frames. A waiting thread is read without a signal, so that no system call of
/// the program is interrupted.
///
/// For one session. Sampler's thread only, unless stated otherwise.
class ThreadVisits {
public:
  /// GIL held.
  explicit ThreadVisits(VisitParts parts);

  /// Call before a round's first visit. `may_ask`: the signal is the sampler's.
  void beginRound(uint64_t round, bool may_ask);
  /// Threads with other filters of system calls than these are not asked.
  void setFilters(CallFilters filters) { filters_ = filters; }
  /// Begin with a thread that was just found. `is_old`: it may be older than the session.
  void begin(const Senses &senses, SampledThread &thread, bool is_old);
  /// False when the thread has ended.
  bool visit(const Senses &senses, SampledThread &thread);
  /// Charge the time since the last visit, and what is owed: after the last round, when there is no
  /// sampler's thread. Opens no descriptor.
  void finish(SampledThread &thread);
  /// The thread or the session has ended: charge what is owed. A living thread is named when the
  /// tree is read.
  void forget(SampledThread &thread, bool has_ended);

private:
  void identify(const Senses &senses, SampledThread &thread);
  void findRecorder(SampledThread &thread);
  void takeAnswer(const Senses &senses, SampledThread &thread);
  void look(const Senses &senses, SampledThread &thread, uint64_t cpu_ns);
  bool mayAsk(const SampledThread &thread, SignalMasks signals);
  bool hasLostSignal(SampledThread &thread, SignalMasks signals);
  void ask(const Senses &senses, SampledThread &thread);
  void lookInside(const Senses &senses, SampledThread &thread);
  bool sendQuestion(SampledThread &thread);
  void take(const Senses &senses, SampledThread &thread);
  bool readStill(const Senses &senses, SampledThread &thread, uint64_t cpu_ns, SampleKind kind,
                 SampleDetail detail);
  void stayWaiting(const Senses &senses, SampledThread &thread, uint64_t cpu_ns);
  void chargeWithoutPlace(SampledThread &thread, uint64_t cpu_ns);
  uint64_t toNs(uint64_t ticks) const {
    return static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick_);
  }

  VisitParts parts_;
  RemotePython python_;
  SampleCharges charges_;
  NativeCallees callees_;
  std::unique_ptr<SampledContext> scratch_ = std::make_unique<SampledContext>();
  uint64_t round_ = 0;
  bool may_ask_ = false;
  CallFilters filters_; // with which calls were tried
  double ns_per_tick_ = 1;
};

} // namespace deepcontext
