#pragma once
// What the sampler does when it comes by a thread.
#include <Python.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "sampling/counted_threads.h"
#include "sampling/gil_futex.h"
#include "sampling/remote_context.h"
#include "sampling/sample_charges.h"
#include "sampling/sampled_thread.h"
#include "sampling/sampler_counts.h"
#include "sampling/senses.h"
#include "sampling/slot_pool.h"

namespace deepcontext {

/// What the visits of all sessions share.
struct VisitParts {
  const GilFutex &gil;
  SlotPool &slots;
  CountedThreads &counted;
  SamplerCounts &counts;
  const MemoryReader &handlers_memory; // what signal handlers read through
};

/// Finds out where a thread is and charges what it has spent. A thread that has used no processor
/// time since the last visit is where it was. One that has and runs is asked by a signal, which its
/// handler answers with its frames. One that waits is read without a signal, so that no system call
/// of the program is interrupted.
///
/// Of one session. Sampler's thread only, except where it says otherwise.
class ThreadVisits {
public:
  /// GIL held.
  explicit ThreadVisits(VisitParts parts);

  /// Before a round's first visit; `may_ask`: the signal is the sampler's.
  void beginRound(uint64_t round, bool may_ask);
  /// A thread that was just found. `is_old`: it may have been there before the session.
  void begin(const Senses &senses, SampledThread &thread, bool is_old);
  /// False when the thread has ended.
  bool visit(const Senses &senses, SampledThread &thread);
  /// Charge what happened since the last visit, and what is owed: after the last round, when there
  /// is no sampler's thread. Opens no descriptor.
  void finish(SampledThread &thread);
  /// The thread has ended, or the session: charge what is owed. A thread that lives on is named
  /// when the tree is read.
  void forget(SampledThread &thread, bool has_ended);

private:
  void identify(const Senses &senses, SampledThread &thread);
  void findRecorder(SampledThread &thread);
  void takeAnswer(const Senses &senses, SampledThread &thread);
  void look(const Senses &senses, SampledThread &thread, uint64_t cpu_ns);
  bool mayAsk(const Senses &senses, SampledThread &thread);
  void ask(const Senses &senses, SampledThread &thread);
  void take(const Senses &senses, SampledThread &thread);
  bool readStill(const Senses &senses, SampledThread &thread, uint64_t cpu_ns, SampleKind kind,
                 bool waits_for_gil);
  void stayWaiting(SampledThread &thread, uint64_t cpu_ns);
  void chargeWithoutPlace(SampledThread &thread, uint64_t cpu_ns);
  uint64_t toNs(uint64_t ticks) const {
    return static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick_);
  }

  VisitParts parts_;
  RemotePython python_;
  SampleCharges charges_;
  std::unique_ptr<SampledContext> scratch_ = std::make_unique<SampledContext>();
  uint64_t round_ = 0;
  bool may_ask_ = false;
  double ns_per_tick_ = 1;
};

} // namespace deepcontext
