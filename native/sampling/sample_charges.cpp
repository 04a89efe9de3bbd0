#include "sampling/sample_charges.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "core/metric_registry.h"
#include "core/step_clock.h"
#include "core/stretch.h"

namespace deepcontext {

namespace {

Doing doingOf(SampleKind kind, bool is_waiting) {
  switch (kind) {
  case SampleKind::kInOperator:
    return is_waiting ? Doing::kOperatorWaiting : Doing::kOperator;
  case SampleKind::kRunning:
    return Doing::kRunning;
  case SampleKind::kReady:
    return Doing::kReady;
  case SampleKind::kWaiting:
    return Stretch::instance().isInFlight() ? Doing::kCollective : Doing::kWaiting;
  }
  return Doing::kRunning;
}

} // namespace

SampleCharges::SampleCharges() {
  MetricRegistry &metrics = MetricRegistry::instance();
  cpu_metric_ = metrics.id("sampled_cpu_time_ns");
  wait_metric_ = metrics.id("sampled_wait_time_ns");
  gil_metric_ = metrics.id("sampled_gil_time_ns");
  waits_ = {0,
            0,
            metrics.id("sampled_gil_wait_time_ns"),
            metrics.id("sampled_lock_wait_time_ns"),
            metrics.id("sampled_process_wait_time_ns"),
            metrics.id("sampled_io_wait_time_ns"),
            metrics.id("sampled_sleep_time_ns"),
            metrics.id("sampled_collective_wait_time_ns")};
  ready_metric_ = metrics.id("sampled_ready_time_ns");
  operator_ready_metric_ = metrics.id("operator_ready_time_ns");
  step_metric_ = metrics.id("sampled_step_count");
  operators_metric_ = metrics.id("sampled_operators_count");
}

void SampleCharges::charge(SampledThread &thread, Node *place, SampleKind kind,
                           const ThreadClocks &now, SampleDetail detail) {
  if (Stretch::instance().isOpen()) {
    uint64_t before = thread.account.last().wall_ns;
    addToStretch(thread, place, kind, now.wall_ns > before ? now.wall_ns - before : 0);
  }
  thread.seen_at = place;
  addToStep(thread, place, kind, now, detail);
  ChargedTime time = thread.account.charge(kind, now);
  if (kind != SampleKind::kInOperator) {
    thread.place = place;
    add(place, time, kind,
        waitsForRanks(thread, kind, detail) ? SampleDetail::kCollective : detail);
    if (time.cpu_ns > 0 || time.wait_ns > 0) {
      tree_.addTo(place, step_metric_, StepClock::now());
      if (thread.recorder) {
        tree_.addTo(place, operators_metric_,
                    thread.recorder->counters.operators.load(std::memory_order_relaxed));
      }
    }
  }
}

void SampleCharges::chargeReady(const KernelThreads &kernel, SampledThread &thread, Node *place,
                                SampleKind kind, const ThreadClocks &now) {
  // The kernel is asked where the thread did not run for a while, which is rare on a quiet machine.
  constexpr uint64_t kLeastNs = 500'000;
  const ThreadClocks &before = thread.account.last();
  uint64_t elapsed_ns = now.wall_ns - std::min(before.wall_ns, now.wall_ns);
  uint64_t idle_ns = elapsed_ns - std::min(now.cpu_ns - before.cpu_ns, elapsed_ns);
  uint64_t inside_ns = now.operator_ns - std::min(before.operator_ns, now.operator_ns);
  thread.idle_in_operators_ns += std::min(idle_ns, inside_ns);
  if (thread.number == getpid() && idle_ns >= kLeastNs) {
    uint64_t ready_ns = kernel.readyNs(thread.number);
    // Zero while the thread still waits: the kernel counts a wait when it ends.
    uint64_t since = ready_ns - std::min(std::exchange(thread.seen_ready_ns, ready_ns), ready_ns);
    uint64_t part = std::min(since, thread.idle_in_operators_ns);
    if (kind == SampleKind::kInOperator && part > 0) {
      tree_.addTo(place, operator_ready_metric_, part);
    }
    thread.idle_in_operators_ns = since > 0 ? 0 : thread.idle_in_operators_ns;
  }
  if (kind != SampleKind::kInOperator) {
    thread.idle_in_operators_ns = 0;
  }
}

void SampleCharges::chargeCounters(SampledThread &thread, Node *place, bool is_waiting) {
  thread.counters.settle(is_waiting, [&](const PerfEvent &event, uint64_t value) {
    tree_.addTo(place, MetricRegistry::instance().id(event.metric), value);
  });
}

void SampleCharges::chargeWhole(const SampledThread &thread, uint64_t cpu_ns) {
  add(nodeOf(thread), {cpu_ns, 0}, SampleKind::kRunning, SampleDetail::kNone);
}

void SampleCharges::settle(SampledThread &thread) {
  if (thread.is_identified) {
    add(thread.place, thread.account.settle(), SampleKind::kRunning, SampleDetail::kNone);
  }
  thread.counters.settleAll([&](const PerfEvent &event, uint64_t value) {
    tree_.addTo(thread.is_identified ? thread.place : nodeOf(thread),
                MetricRegistry::instance().id(event.metric), value);
  });
}

/// A rank is late because of the threads that call its collectives, or of the main thread, for
/// which those of autograd wait.
bool SampleCharges::isOfCollectives(const SampledThread &thread) {
  bool is_caller =
      thread.recorder && thread.recorder->calls_collectives.load(std::memory_order_relaxed);
  return is_caller || thread.number == getpid();
}

/// A collective waits by a lock, a socket, or for the thread that runs it.
bool SampleCharges::waitsForRanks(const SampledThread &thread, SampleKind kind,
                                  SampleDetail detail) {
  bool is_wait = kind == SampleKind::kWaiting &&
                 (detail == SampleDetail::kLock || detail == SampleDetail::kIo);
  return is_wait && Stretch::instance().isInFlight() && isOfCollectives(thread);
}

void SampleCharges::addToStretch(const SampledThread &thread, Node *place, SampleKind kind,
                                 uint64_t elapsed_ns) {
  if (isOfCollectives(thread)) {
    Stretch::instance().add(place, doingOf(kind, thread.is_waiting), elapsed_ns);
  }
}

/// Without the time in which other programs had the processor, which makes any step slow: also
/// while they keep it from the thread that holds the GIL.
void SampleCharges::addToStep(const SampledThread &thread, Node *place, SampleKind kind,
                              const ThreadClocks &now, SampleDetail detail) {
  const ThreadClocks &before = thread.account.last();
  if (thread.number != getpid() || now.wall_ns <= before.wall_ns || now.cpu_ns < before.cpu_ns) {
    return;
  }
  bool is_waiting =
      kind == SampleKind::kWaiting || (kind == SampleKind::kInOperator && thread.is_waiting);
  if (is_waiting && detail == SampleDetail::kGil) {
    return;
  }
  uint64_t elapsed_ns = now.wall_ns - before.wall_ns;
  slow_steps_.add(&tree_, place,
                  is_waiting ? elapsed_ns : std::min(elapsed_ns, now.cpu_ns - before.cpu_ns));
}

void SampleCharges::add(Node *place, ChargedTime time, SampleKind kind, SampleDetail detail) {
  if (time.cpu_ns > 0) {
    tree_.addTo(place, cpu_metric_, time.cpu_ns);
    if (detail == SampleDetail::kHoldsGil) {
      tree_.addTo(place, gil_metric_, time.cpu_ns);
    }
  }
  if (time.wait_ns > 0) {
    tree_.addTo(place, wait_metric_, time.wait_ns);
    if (kind == SampleKind::kReady) {
      tree_.addTo(place, ready_metric_, time.wait_ns);
    } else if (uint16_t metric = waits_[static_cast<size_t>(detail)];
               metric && kind == SampleKind::kWaiting) {
      tree_.addTo(place, metric, time.wait_ns);
    }
  }
}

} // namespace deepcontext
