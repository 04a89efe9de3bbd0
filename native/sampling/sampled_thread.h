#pragma once
// The sampler's state of one thread of the program.
#include <cstdint>

#include "core/recorder.h"
#include "sampling/perf_counters.h"
#include "sampling/sample_detail.h"
#include "sampling/signal_handler.h"
#include "sampling/thread_account.h"
#include "sampling/thread_names.h"

namespace deepcontext {

/// Lives from the round that finds the thread to the round that no longer does. A round is one
/// visit to all threads.
struct SampledThread {
  SampledThread(int kernel_number, const ThreadClocks &start)
      : number(kernel_number), account(start) {}

  int number;                         // the kernel's
  uint32_t slot = SampleSlots::kMost; // none yet
  uint32_t name = 0;                  // interned; the kernel's
  uint32_t serial = ThreadNames::kShared;
  const void *python_state = nullptr;
  Recorder *recorder = nullptr;
  bool is_identified = false; // it runs Python, or has recorded something
  uint32_t visits = 0;
  uint64_t next_identification = 0; // a round
  uint64_t next_visit = 0;
  uint32_t still_visits = 0; // consecutive visits that found it at the same place
  uint64_t seen_cpu_ns = 0;
  uint64_t seen_ready_ns = 0;                // KernelThreads::readyNs
  uint64_t idle_in_operators_ns = 0;         // that no wait for a processor explains yet
  bool is_waiting = false;                   // as of seen_cpu_ns
  SampleDetail detail = SampleDetail::kNone; // what it waits for, as of seen_cpu_ns
  bool waits_in_operator = false;
  Node *place = nullptr;   // the last known
  Node *seen_at = nullptr; // the same, or the operator inside of which the thread was found
  // The place of the last answer, without and with the native functions that ran there.
  Node *answered_at = nullptr;
  Node *answered_inside = nullptr;
  uint64_t next_copy_ns = 0;      // of its stack
  uint64_t taken_cpu_ns = 0;      // its clock when the signal was first found taken; 0: was not
  bool is_answer_charged = false; // the answer that is asked for stands for time
  ThreadAccount account;
  PerfCounters counters;
  bool is_counted = false; // its counters are open
};

} // namespace deepcontext
