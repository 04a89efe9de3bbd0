#include "sampling/thread_visits.h"

#include <algorithm>
#include <atomic>
#include <unistd.h>

#include "core/clock.h"

namespace deepcontext {

namespace {

constexpr uint64_t kRoundsBetweenIdentifications = 50;
constexpr uint32_t kVisitsOfYouth = 5;
// A thread that does not run is visited less and less often, but at least this often.
constexpr uint32_t kMostRoundsBetweenVisits = 8;
constexpr uint32_t kStillVisitsBeforeRarer = 16;
// At higher rates than this allows, samples at the place of the last copy have its functions.
constexpr uint64_t kNsBetweenCopies = 5'000'000;
// Of its own time, from the signal to the beginning of an answer.
constexpr uint64_t kLongestStartNs = 1'000'000;
const std::vector<uint32_t> kNoFunctions;

LevelView levelsOf(const SampledThread &thread) {
  return thread.recorder ? thread.recorder->view(ticks()) : LevelView();
}

} // namespace

ThreadVisits::ThreadVisits(VisitParts parts) : parts_(parts), callees_(parts.counts.not_inside) {}

void ThreadVisits::beginRound(uint64_t round, bool may_ask) {
  round_ = round;
  may_ask_ = may_ask;
  ns_per_tick_ = RecorderRegistry::instance().clock().nsPerTick();
}

void ThreadVisits::begin(const Senses &senses, SampledThread &thread, bool is_old) {
  identify(senses, thread);
  if (is_old && thread.recorder) {
    ThreadClocks start = thread.account.last();
    start.operator_ns = toNs(levelsOf(thread).operator_ticks);
    thread.account = ThreadAccount(start);
  }
}

/// Find out whether a thread runs Python and whether it records. Both may begin at any time.
void ThreadVisits::identify(const Senses &senses, SampledThread &thread) {
  thread.next_identification = round_ + kRoundsBetweenIdentifications;
  thread.recorder = RecorderRegistry::instance().ofThread(thread.number);
  RemotePython::State state = python_.find(thread.number, senses.memory);
  thread.python_state = state.address;
  bool was_identified = thread.is_identified;
  thread.is_identified = was_identified || thread.recorder || state.address;
  if (state.address && thread.serial == ThreadNames::kShared) {
    thread.serial = ThreadNames::instance().add(state.handle);
  }
  if (!was_identified) {
    thread.place = charges_.nodeOf(thread);
  }
}

/// A Python thread may begin to record at any moment, and the time of its operators must not be
/// charged twice.
void ThreadVisits::findRecorder(SampledThread &thread) {
  if (thread.is_identified && !thread.recorder) {
    thread.recorder = RecorderRegistry::instance().ofThread(thread.number);
  }
}

bool ThreadVisits::visit(const Senses &senses, SampledThread &thread) {
  // A thread exists for a short time before it runs Python.
  bool is_young = ++thread.visits <= kVisitsOfYouth;
  if (thread.next_identification <= round_ || (is_young && !thread.is_identified)) {
    identify(senses, thread);
  }
  findRecorder(thread);
  if (thread.slot != SampleSlots::kMost) {
    takeAnswer(senses, thread);
  }
  std::optional<uint64_t> cpu_ns = KernelThreads::cpuNs(thread.number);
  if (!cpu_ns) {
    return false;
  }
  bool is_still = *cpu_ns == thread.seen_cpu_ns;
  thread.still_visits = is_still ? thread.still_visits + 1 : 0;
  thread.next_visit =
      round_ + 1 +
      std::min(thread.still_visits / kStillVisitsBeforeRarer, kMostRoundsBetweenVisits - 1);
  if (!thread.is_identified) {
    if (!is_still && !is_young) {
      chargeWithoutPlace(thread, *cpu_ns);
    }
  } else if (is_still && thread.is_waiting) {
    stayWaiting(senses, thread, *cpu_ns);
  } else {
    look(senses, thread, *cpu_ns);
  }
  return true;
}

void ThreadVisits::look(const Senses &senses, SampledThread &thread, uint64_t cpu_ns) {
  // The clock of a running thread advances between two readings.
  if (KernelThreads::cpuNs(thread.number) != cpu_ns) {
    ask(senses, thread);
    return;
  }
  std::optional<ThreadState> state = senses.kernel.state(thread.number);
  SampleKind kind = state && state->is_running ? SampleKind::kReady : SampleKind::kWaiting;
  SampleDetail detail = SampleDetail::kNone;
  if (state && kind == SampleKind::kWaiting) {
    detail = parts_.gil.isWaitedFor(*state) ? SampleDetail::kGil : waitedFor(*state);
  }
  if (!readStill(senses, thread, cpu_ns, kind, detail)) {
    ask(senses, thread);
  }
}

/// Read anew each time: a signal for a thread that blocks it stays pending, and the program would
/// receive it from sigwait(), or by a handler that it sets before it unblocks the signal.
bool ThreadVisits::mayAsk(const SampledThread &thread, SignalMasks signals) {
  if (!may_ask_ || signals.isBlocked(kSampleSignal)) {
    return false;
  }
  if (CallFilters::of(thread.number) != filters_) { // its handler's calls may end the process
    SamplerCounts::bump(parts_.counts.filtered);
    return false;
  }
  return true;
}

void ThreadVisits::ask(const Senses &senses, SampledThread &thread) {
  thread.is_waiting = false;
  if (!mayAsk(thread, senses.kernel.signals(thread.number))) {
    SamplerCounts::bump(parts_.counts.unanswered);
    std::optional<uint64_t> cpu_ns = KernelThreads::cpuNs(thread.number);
    chargeWithoutPlace(thread, cpu_ns.value_or(thread.account.last().cpu_ns));
    return;
  }
  thread.is_answer_charged = true;
  if (sendQuestion(thread)) {
    parts_.counted.read(thread);
  }
}

/// A thread that waits for a processor is at a place that can be read, but only its own answer, as
/// soon as it runs, has the native functions there.
void ThreadVisits::lookInside(const Senses &senses, SampledThread &thread) {
  bool is_due = monotonicNs() >= thread.next_copy_ns;
  if (is_due && mayAsk(thread, senses.kernel.signals(thread.number))) {
    bool is_pending =
        thread.slot != SampleSlots::kMost && thread.is_answer_charged &&
        SampleSlots::at(thread.slot)->state.load(std::memory_order_relaxed) != SampleSlot::kIdle;
    thread.is_answer_charged = is_pending;
    sendQuestion(thread);
  }
}

/// False when the thread cannot be asked, or has not answered yet.
bool ThreadVisits::sendQuestion(SampledThread &thread) {
  if (thread.slot == SampleSlots::kMost) {
    thread.slot = parts_.slots.take();
  }
  if (thread.slot == SampleSlots::kMost) {
    SamplerCounts::bump(parts_.counts.threads_refused);
    return false;
  }
  SampleSlot *slot = SampleSlots::at(thread.slot);
  if (slot->state.load(std::memory_order_relaxed) != SampleSlot::kIdle) {
    return false;
  }
  uint64_t now_ns = monotonicNs();
  slot->wants_stack = now_ns >= thread.next_copy_ns;
  thread.next_copy_ns = slot->wants_stack ? now_ns + kNsBetweenCopies : thread.next_copy_ns;
  slot->reader.begin(&parts_.handlers_memory);
  thread.taken_cpu_ns = 0;
  slot->thread.store(thread.number, std::memory_order_relaxed);
  slot->state.store(SampleSlot::kAsked, std::memory_order_release);
  if (!askForSample(thread.slot, thread.number)) {
    slot->state.store(SampleSlot::kIdle, std::memory_order_relaxed);
  }
  return true;
}

void ThreadVisits::takeAnswer(const Senses &senses, SampledThread &thread) {
  SampleSlot *slot = SampleSlots::at(thread.slot);
  if (slot->state.load(std::memory_order_acquire) == SampleSlot::kAnswered) {
    take(senses, thread);
    slot->state.store(SampleSlot::kIdle, std::memory_order_relaxed);
    return;
  }
  uint32_t asked = SampleSlot::kAsked;
  if (slot->state.load(std::memory_order_relaxed) == asked &&
      hasLostSignal(thread, senses.kernel.signals(thread.number)) &&
      slot->state.compare_exchange_strong(asked, SampleSlot::kIdle)) {
    SamplerCounts::bump(parts_.counts.astray);
  }
}

/// Whether the program has received the signal that asks, or will: it may block or take the signal
/// while it is on its way. A signal that is not pending and not answered may have been taken by the
/// sampler's handler, in which the thread has lost its processor and the signal is blocked, too.
bool ThreadVisits::hasLostSignal(SampledThread &thread, SignalMasks signals) {
  if (signals.isPending(kSampleSignal) || !may_ask_) {
    return !mayAsk(thread, signals) && !signals.isOfCLibrary(); // else it answers soon, or never
  }
  uint64_t cpu_ns = KernelThreads::cpuNs(thread.number).value_or(thread.taken_cpu_ns);
  if (thread.taken_cpu_ns == 0) {
    thread.taken_cpu_ns = cpu_ns;
  }
  return cpu_ns - thread.taken_cpu_ns > kLongestStartNs;
}

/// Charge the sample that the thread has answered.
void ThreadVisits::take(const Senses &senses, SampledThread &thread) {
  const SampleSlot &slot = *SampleSlots::at(thread.slot);
  const SampledContext &context = slot.context;
  if (context.recorder) {
    thread.recorder = context.recorder;
  }
  if (context.thread_state) {
    thread.python_state = context.thread_state;
  }
  if (thread.is_answer_charged) {
    SamplerCounts::bump(parts_.counts.running);
  }
  SamplerCounts::bump(parts_.counts.waits_ended, context.has_ended_wait ? 1 : 0);
  ThreadClocks now{slot.wall_ns, toNs(context.operator_ticks), slot.cpu_ns};
  if (context.is_in_operator) {
    if (!thread.is_answer_charged) {
      return;
    }
    Node *innermost = charges_.tree().innermost(context, charges_.nodeOf(thread));
    charges_.chargeReady(senses.kernel, thread, innermost, SampleKind::kInOperator, now);
    charges_.charge(thread, innermost, SampleKind::kInOperator, now, SampleDetail::kNone);
    charges_.chargeCounters(thread, innermost, false);
    return;
  }
  bool is_whole = true;
  Node *place = charges_.tree().place(context, charges_.nodeOf(thread), senses.memory, &is_whole);
  if (!place || context.is_garbled) {
    SamplerCounts::bump(parts_.counts.lost, thread.is_answer_charged ? 1 : 0);
    return;
  }
  if (slot.wants_stack) {
    thread.answered_at = thread.answered_inside = place;
    for (uint32_t function : is_whole ? callees_.of(context, slot.stack) : kNoFunctions) {
      thread.answered_inside = charges_.tree().callee(thread.answered_inside, function);
    }
  }
  place = place == thread.answered_at ? thread.answered_inside : place;
  if (!thread.is_answer_charged) {
    return;
  }
  SamplerCounts::bump(parts_.counts.cut, is_whole ? 0 : 1);
  charges_.chargeReady(senses.kernel, thread, place, SampleKind::kRunning, now);
  charges_.charge(thread, place, SampleKind::kRunning, now,
                  context.holds_gil ? SampleDetail::kHoldsGil : SampleDetail::kNone);
  charges_.chargeCounters(thread, place, false);
}

/// Read the place of a thread that does not run; false when it has run meanwhile.
bool ThreadVisits::readStill(const Senses &senses, SampledThread &thread, uint64_t cpu_ns,
                             SampleKind kind, SampleDetail detail) {
  if (thread.python_state && !python_.isOf(thread.python_state, thread.number, senses.memory)) {
    identify(senses, thread);
  }
  uint64_t now_ns = monotonicNs();
  python_.sample(thread.python_state, thread.recorder, ticks(), scratch_.get(), senses.memory);
  std::atomic_thread_fence(std::memory_order_acquire); // what was read was read before the clock
  if (KernelThreads::cpuNs(thread.number) != cpu_ns) {
    return false;
  }
  SamplerCounts::bump(parts_.counts.waiting);
  thread.seen_cpu_ns = cpu_ns;
  thread.is_waiting = kind == SampleKind::kWaiting;
  thread.detail = detail;
  thread.waits_in_operator = scratch_->is_in_operator;
  ThreadClocks now{now_ns, toNs(scratch_->operator_ticks), cpu_ns};
  Node *place = nullptr;
  if (scratch_->is_in_operator) {
    place = charges_.tree().innermost(*scratch_, charges_.nodeOf(thread));
  } else {
    bool is_whole = true;
    place = charges_.tree().place(*scratch_, charges_.nodeOf(thread), senses.memory, &is_whole);
    if (!place || scratch_->is_garbled) {
      SamplerCounts::bump(parts_.counts.lost);
      thread.is_waiting = false; // read it again next time
      return true;
    }
    SamplerCounts::bump(parts_.counts.cut, is_whole ? 0 : 1);
  }
  if (kind == SampleKind::kReady && !scratch_->is_in_operator) {
    place = place == thread.answered_at ? thread.answered_inside : place;
    lookInside(senses, thread);
  }
  // Preempted by the sampler, it stands for where it runs.
  if (kind == SampleKind::kReady && scratch_->holds_gil) {
    detail = SampleDetail::kHoldsGil;
  }
  kind = scratch_->is_in_operator ? SampleKind::kInOperator : kind;
  charges_.chargeReady(senses.kernel, thread, place, kind, now);
  charges_.charge(thread, place, kind, now, detail);
  parts_.counted.read(thread);
  charges_.chargeCounters(thread, place, thread.is_waiting);
  return true;
}

/// The thread has not run since it was seen waiting, so it still waits at that place: for the same,
/// or, where it is looked up, for a processor.
void ThreadVisits::stayWaiting(const Senses &senses, SampledThread &thread, uint64_t cpu_ns) {
  ThreadClocks now = thread.account.last();
  now.wall_ns = monotonicNs();
  now.cpu_ns = cpu_ns;
  if (thread.recorder) {
    now.operator_ns = toNs(levelsOf(thread).operator_ticks);
  }
  SampleKind kind = SampleKind::kWaiting;
  if (thread.waits_in_operator) {
    kind = SampleKind::kInOperator;
  } else if (thread.number == getpid()) {
    std::optional<ThreadState> state = senses.kernel.state(thread.number);
    kind = state && state->is_running ? SampleKind::kReady : kind;
  }
  charges_.chargeReady(senses.kernel, thread, thread.seen_at, kind, now);
  charges_.charge(thread, thread.seen_at, kind, now, thread.detail);
}

/// Charge a thread as a whole: one without Python, whose waits are not counted, or one that runs
/// and cannot be asked.
void ThreadVisits::chargeWithoutPlace(SampledThread &thread, uint64_t cpu_ns) {
  ThreadClocks now = thread.account.last();
  uint64_t wall_ns = monotonicNs();
  thread.seen_cpu_ns = cpu_ns;
  parts_.counted.read(thread);
  charges_.chargeCounters(thread, charges_.nodeOf(thread), false);
  if (thread.is_identified) {
    LevelView levels = levelsOf(thread);
    now = {wall_ns, toNs(levels.operator_ticks), cpu_ns};
    charges_.charge(thread, charges_.nodeOf(thread),
                    levels.is_in_operator ? SampleKind::kInOperator : SampleKind::kRunning, now,
                    SampleDetail::kNone);
    return;
  }
  charges_.chargeWhole(thread, cpu_ns - now.cpu_ns);
  thread.account = ThreadAccount({wall_ns, 0, cpu_ns});
}

void ThreadVisits::finish(SampledThread &thread) {
  findRecorder(thread);
  std::optional<uint64_t> cpu_ns = KernelThreads::cpuNs(thread.number);
  if (cpu_ns) {
    uint64_t now = monotonicNs();
    LevelView levels = levelsOf(thread);
    ThreadClocks clocks{now, toNs(levels.operator_ticks), *cpu_ns};
    bool was_waiting = thread.is_waiting && *cpu_ns == thread.seen_cpu_ns;
    charges_.charge(thread, thread.place,
                    levels.is_in_operator ? SampleKind::kInOperator
                    : was_waiting         ? SampleKind::kWaiting
                                          : SampleKind::kRunning,
                    clocks, SampleDetail::kNone);
  }
  forget(thread, !cpu_ns);
}

void ThreadVisits::forget(SampledThread &thread, bool has_ended) {
  parts_.counted.close(thread);
  charges_.settle(thread);
  if (has_ended) {
    ThreadNames::instance().end(thread.serial);
  }
  if (thread.slot != SampleSlots::kMost) {
    parts_.slots.giveBack(thread.slot);
  }
}

} // namespace deepcontext
