#include "sampling/sampler.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <linux/futex.h>
#include <new>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/metric_registry.h"
#include "core/own_thread.h"
#include "python/code_table.h"
#include "sampling/signal_handler.h"
#include "sampling/thread_names.h"

namespace deepcontext {

/// What only the sampler's thread may open: its descriptors are its own.
struct Sampler::Senses {
  KernelThreads kernel;
  MemoryReader memory;
};

struct Sampler::Thread {
  explicit Thread(int kernel_number, const ThreadClocks &start)
      : number(kernel_number), account(start) {}

  int number;
  uint32_t slot = SampleSlots::kMost; // none yet
  uint32_t name = 0;                  // interned; the kernel's
  uint32_t serial = ThreadNames::kShared;
  const void *python_state = nullptr;
  Recorder *recorder = nullptr;
  bool is_identified = false; // it runs Python, or has recorded something
  bool is_deaf = false;       // it holds the signal back
  uint32_t unanswered_rounds = 0;
  uint32_t visits = 0;
  uint64_t next_identification = 0; // a round
  uint64_t next_mask_check = 0;
  uint64_t next_visit = 0;
  uint32_t still_visits = 0; // in a row that found it where it was
  uint64_t seen_cpu_ns = 0;
  bool is_waiting = false; // as of seen_cpu_ns
  bool waits_for_gil = false;
  bool waits_in_operator = false;
  Node *place = nullptr; // the last one known
  ThreadAccount account;
  PerfCounters counters;
  bool is_counted = false;
};

namespace {

constexpr uint64_t kRoundsBetweenSearches = 25; // one may have come while another went
constexpr uint64_t kRoundsBetweenIdentifications = 50;
constexpr uint32_t kVisitsOfYouth = 5;
constexpr uint64_t kRoundsBetweenMaskChecks = 100;
// A thread that stays where it is is visited less and less often, but this often at least.
constexpr uint32_t kMostRoundsBetweenVisits = 8;
constexpr uint32_t kStillVisitsBeforeRarer = 16;
constexpr uint32_t kMostCountedThreads = 128; // each read costs, and makes switching threads dearer
constexpr size_t kSpareFiles = 16;

} // namespace

Sampler::Sampler()
    : cpu_metric_(MetricRegistry::instance().id("sampled_cpu_time_ns")),
      wait_metric_(MetricRegistry::instance().id("sampled_wait_time_ns")),
      gil_metric_(MetricRegistry::instance().id("sampled_gil_time_ns")),
      gil_wait_metric_(MetricRegistry::instance().id("sampled_gil_wait_time_ns")),
      ready_metric_(MetricRegistry::instance().id("sampled_ready_time_ns")) {
  sem_init(&opened_, 0, 0);
  ForkPause::instance().add(this);
}

Sampler &Sampler::instance() {
  static Sampler *const sampler = new Sampler();
  return *sampler;
}

std::string Sampler::start(double rate_hz) {
  if (!CodeTable::instance().isWatching()) {
    return "freed code objects cannot be noticed, so a sample could name the wrong function";
  }
  rate_hz_ = rate_hz;
  round_ = 0;
  threads_.clear();
  free_slots_.clear();
  for (uint32_t slot = 0; slot < slot_count_; ++slot) {
    free_slots_.push_back(slot);
  }
  for (auto *count :
       {&counts_.rounds, &counts_.running, &counts_.waiting, &counts_.lost, &counts_.cut,
        &counts_.unanswered, &counts_.threads, &counts_.threads_refused, &counts_.own_cpu_ns}) {
    count->store(0, std::memory_order_relaxed);
  }
  perf_counts_.clear();
  ThreadNames::instance().clear();
  python_ = std::make_unique<RemotePython>();
  tree_ = std::make_unique<ContextTree>();
  scratch_ = std::make_unique<SampledContext>();
  was_taken_ = false;
  may_ask_ = takeSampleSignal();
  is_started_ = true;
  setNextRound();
  gil_.begin();
  is_opening_ = true;
  resume();
  while (sem_wait(&opened_) != 0) {
  }
  is_opening_ = false;
  std::string reason = cannot_open_; // before other threads may fork, and so start another
  gil_.finish();
  if (!reason.empty()) {
    stop();
  }
  return reason;
}

void Sampler::stop() {
  if (!is_started_) {
    return;
  }
  join();
  is_started_ = false;
  if (may_ask_) {
    returnSampleSignal();
  }
  finishAll();
}

std::string Sampler::limitation() const {
  if (!may_ask_) {
    return "the program has its own use for SIGURG: running threads are charged without a line";
  }
  if (was_taken_.load(std::memory_order_relaxed)) {
    return "the program took over SIGURG: running threads were charged without a line since";
  }
  return "";
}

// -- the thread's life

void Sampler::pause() {
  if (is_started_) {
    join();
  }
}

void Sampler::resume() {
  if (!is_started_ || thread_.joinable()) {
    return;
  }
  uint32_t turn = turn_.fetch_add(1) + 1;
  thread_ = startOwnThread([this, turn] { run(turn); });
}

void Sampler::join() {
  if (!thread_.joinable()) {
    return;
  }
  turn_.fetch_add(1);
  syscall(SYS_futex, &turn_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  thread_.join(); // it never waits for the GIL
}

void Sampler::abandonInChild() {
  if (!is_started_) {
    return;
  }
  is_started_ = false;
  if (may_ask_) {
    returnSampleSignal();
  }
  new (&thread_) std::thread(); // what the handle names does not exist here
}

void Sampler::run(uint32_t turn) {
  bool is_first = is_opening_;
  cannot_open_.clear();
  if (separateDescriptors(&cannot_open_)) {
    Senses senses;
    if (!senses.kernel.isUsable() || !senses.memory.isUsable()) {
      cannot_open_ = "the kernel does not show this process its own threads and memory under /proc";
    }
    if (is_first) {
      if (cannot_open_.empty()) {
        gil_.watch(senses.kernel);
        findThreads(senses);
      }
      sem_post(&opened_);
    } else {
      openCounters();
    }
    uint64_t before = KernelThreads::cpuNs(static_cast<int>(syscall(SYS_gettid))).value_or(0);
    while (cannot_open_.empty() && turn_.load() == turn) {
      sleep(turn);
      if (turn_.load() == turn) {
        visitAll(senses);
        setNextRound();
      }
    }
    closeCounters();
    uint64_t after = KernelThreads::cpuNs(static_cast<int>(syscall(SYS_gettid))).value_or(before);
    counts_.own_cpu_ns.fetch_add(after - before, std::memory_order_relaxed);
  } else if (is_first) {
    sem_post(&opened_);
  }
}

/// One period from now, a fifth more or less: a program whose own period is the same would always
/// be found at the same place.
void Sampler::setNextRound() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  double share = 0.8 + 0.4 * static_cast<double>(random_ >> 11) / 9007199254740992.0;
  next_round_ns_ = monotonicNs() + static_cast<uint64_t>(share * 1e9 / rate_hz_);
}

void Sampler::sleep(uint32_t turn) {
  uint64_t now = monotonicNs();
  if (now >= next_round_ns_) {
    return;
  }
  auto left_ns = static_cast<int64_t>(next_round_ns_ - now);
  timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  syscall(SYS_futex, &turn_, FUTEX_WAIT_PRIVATE, turn, &left, nullptr, 0);
}

/// After the last round: charge what happened since, and what is owed. No descriptor is opened.
void Sampler::finishAll() {
  ns_per_tick_ = RecorderRegistry::instance().clock().nsPerTick();
  for (auto &[number, thread] : threads_) {
    std::optional<uint64_t> cpu_ns = KernelThreads::cpuNs(number);
    if (cpu_ns) {
      uint64_t now = monotonicNs();
      LevelView levels = thread->recorder ? thread->recorder->view(ticks()) : LevelView();
      ThreadClocks clocks{now, toNs(levels.operator_ticks), *cpu_ns};
      bool was_waiting = thread->is_waiting && *cpu_ns == thread->seen_cpu_ns;
      charge(*thread, thread->place,
             levels.is_in_operator ? SampleKind::kInOperator
             : was_waiting         ? SampleKind::kWaiting
                                   : SampleKind::kRunning,
             clocks, false);
    }
    forget(*thread, !cpu_ns);
  }
  threads_.clear();
}

// -- a round

void Sampler::visitAll(const Senses &senses) {
  ++round_;
  counts_.rounds.fetch_add(1, std::memory_order_relaxed);
  ns_per_tick_ = RecorderRegistry::instance().clock().nsPerTick();
  if (may_ask_ && !was_taken_.load(std::memory_order_relaxed) && !ownsSampleSignal()) {
    was_taken_.store(true, std::memory_order_relaxed);
  }
  if (round_ % kRoundsBetweenSearches == 0 || senses.kernel.population() != population_) {
    findThreads(senses);
  }
  for (auto place = threads_.begin(); place != threads_.end();) {
    Thread &thread = *place->second;
    if (thread.next_visit <= round_ && !visit(senses, thread)) {
      forget(thread, true);
      place = threads_.erase(place);
    } else {
      ++place;
    }
  }
}

void Sampler::findThreads(const Senses &senses) {
  int self = static_cast<int>(syscall(SYS_gettid));
  population_ = senses.kernel.population();
  for (int number : senses.kernel.list()) {
    if (number != self && threads_.find(number) == threads_.end()) {
      addThread(senses, number);
    }
  }
}

void Sampler::addThread(const Senses &senses, int number) {
  std::string name = senses.kernel.name(number);
  std::optional<uint64_t> cpu_ns = KernelThreads::cpuNs(number);
  if (!cpu_ns || isOwnThreadName(name)) {
    return;
  }
  // What a new thread did before it was found, it did after the session began.
  uint64_t now = monotonicNs();
  bool is_old = round_ == 0;
  ThreadClocks start{is_old ? now : now - *cpu_ns, 0, is_old ? *cpu_ns : 0};
  auto thread = std::make_unique<Thread>(number, start);
  if (number == getpid()) {
    name = "MainThread";
  } else if (name == senses.kernel.name(getpid())) {
    name = "Thread"; // it has no name of its own
  }
  thread->name = Interner::instance().internBounded(name);
  identify(senses, *thread);
  if (is_old && thread->recorder) {
    start.operator_ns = toNs(thread->recorder->view(ticks()).operator_ticks);
    thread->account = ThreadAccount(start);
  }
  counts_.threads.fetch_add(1, std::memory_order_relaxed);
  openCounters(*thread);
  threads_.emplace(number, std::move(thread));
}

/// Find out whether a thread runs Python, and whether it records. Either may begin at any time.
void Sampler::identify(const Senses &senses, Thread &thread) {
  thread.next_identification = round_ + kRoundsBetweenIdentifications;
  thread.recorder = RecorderRegistry::instance().ofThread(thread.number);
  RemotePython::State state = python_->find(thread.number, senses.memory);
  thread.python_state = state.address;
  bool was_identified = thread.is_identified;
  thread.is_identified = was_identified || thread.recorder || state.address;
  if (state.address && thread.serial == ThreadNames::kShared) {
    thread.serial = ThreadNames::instance().add(state.handle);
  }
  if (!was_identified) {
    thread.place = nodeOf(thread);
  }
}

/// Look after one thread; false when it has ended.
bool Sampler::visit(const Senses &senses, Thread &thread) {
  // A thread exists for a moment before it runs Python.
  bool is_young = ++thread.visits <= kVisitsOfYouth;
  if (thread.next_identification <= round_ || (is_young && !thread.is_identified)) {
    identify(senses, thread);
  }
  if (thread.slot != SampleSlots::kMost) {
    SampleSlot *slot = SampleSlots::at(thread.slot);
    uint32_t state = slot->state.load(std::memory_order_acquire);
    if (state == SampleSlot::kAnswered) {
      take(senses, thread);
      slot->state.store(SampleSlot::kIdle, std::memory_order_relaxed);
    } else if (state == SampleSlot::kAsked && ++thread.unanswered_rounds > 1) {
      thread.next_mask_check = 0;
      thread.is_deaf = !mayAsk(senses, thread);
    }
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
    stayWaiting(thread, *cpu_ns);
  } else {
    look(senses, thread, *cpu_ns);
  }
  return true;
}

void Sampler::look(const Senses &senses, Thread &thread, uint64_t cpu_ns) {
  // The clock of a thread that is on a processor moves between two readings.
  if (KernelThreads::cpuNs(thread.number) != cpu_ns) {
    ask(senses, thread);
    return;
  }
  std::optional<ThreadState> state = senses.kernel.state(thread.number);
  SampleKind kind = state && state->is_running ? SampleKind::kReady : SampleKind::kWaiting;
  bool waits_for_gil = state && gil_.isWaitedFor(*state);
  if (!readStill(senses, thread, cpu_ns, kind, waits_for_gil)) {
    ask(senses, thread);
  }
}

bool Sampler::mayAsk(const Senses &senses, Thread &thread) {
  if (!may_ask_ || was_taken_.load(std::memory_order_relaxed)) {
    return false;
  }
  if (thread.next_mask_check <= round_) {
    thread.next_mask_check = round_ + kRoundsBetweenMaskChecks;
    thread.is_deaf = senses.kernel.isBlocking(thread.number, kSampleSignal);
  }
  return !thread.is_deaf;
}

void Sampler::ask(const Senses &senses, Thread &thread) {
  thread.is_waiting = false;
  if (!mayAsk(senses, thread)) {
    counts_.unanswered.fetch_add(1, std::memory_order_relaxed);
    std::optional<uint64_t> cpu_ns = KernelThreads::cpuNs(thread.number);
    chargeWithoutPlace(thread, cpu_ns.value_or(thread.seen_cpu_ns));
    return;
  }
  if (thread.slot == SampleSlots::kMost) {
    if (free_slots_.empty()) {
      if (slot_count_ == SampleSlots::kMost) {
        counts_.threads_refused.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      SampleSlots::put(slot_count_, new SampleSlot());
      free_slots_.push_back(slot_count_++);
    }
    thread.slot = free_slots_.back();
    free_slots_.pop_back();
    SampleSlots::at(thread.slot)->state.store(SampleSlot::kIdle, std::memory_order_relaxed);
  }
  SampleSlot *slot = SampleSlots::at(thread.slot);
  if (slot->state.load(std::memory_order_relaxed) == SampleSlot::kAsked) {
    return; // still under way
  }
  thread.counters.read(&perf_counts_);
  thread.unanswered_rounds = 0;
  slot->thread.store(thread.number, std::memory_order_relaxed);
  slot->state.store(SampleSlot::kAsked, std::memory_order_release);
  if (!askForSample(thread.slot, thread.number)) {
    slot->state.store(SampleSlot::kIdle, std::memory_order_relaxed);
  }
}

/// Take in what the thread answered.
void Sampler::take(const Senses &senses, Thread &thread) {
  const SampleSlot &slot = *SampleSlots::at(thread.slot);
  const SampledContext &context = slot.context;
  if (context.recorder) {
    thread.recorder = context.recorder;
  }
  if (context.thread_state) {
    thread.python_state = context.thread_state;
  }
  counts_.running.fetch_add(1, std::memory_order_relaxed);
  ThreadClocks now{slot.wall_ns, toNs(context.operator_ticks), slot.cpu_ns};
  if (context.is_in_operator) {
    charge(thread, thread.place, SampleKind::kInOperator, now, false);
    chargeCounters(thread, tree_->innermost(context, nodeOf(thread)), false);
    return;
  }
  bool is_whole = true;
  Node *place = tree_->place(context, nodeOf(thread), senses.memory, &is_whole);
  if (!place || context.is_garbled) {
    counts_.lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  counts_.cut.fetch_add(is_whole ? 0 : 1, std::memory_order_relaxed);
  charge(thread, place, SampleKind::kRunning, now, context.holds_gil);
  chargeCounters(thread, place, false);
}

/// Read the place of a thread that does not run. False when it has run meanwhile.
bool Sampler::readStill(const Senses &senses, Thread &thread, uint64_t cpu_ns, SampleKind kind,
                        bool waits_for_gil) {
  if (thread.python_state && !python_->isOf(thread.python_state, thread.number, senses.memory)) {
    identify(senses, thread);
  }
  uint64_t now_ns = monotonicNs();
  python_->sample(thread.python_state, thread.recorder, ticks(), scratch_.get(), senses.memory);
  if (KernelThreads::cpuNs(thread.number) != cpu_ns) {
    return false;
  }
  counts_.waiting.fetch_add(1, std::memory_order_relaxed);
  thread.seen_cpu_ns = cpu_ns;
  thread.is_waiting = kind == SampleKind::kWaiting;
  thread.waits_for_gil = waits_for_gil;
  thread.waits_in_operator = scratch_->is_in_operator;
  ThreadClocks now{now_ns, toNs(scratch_->operator_ticks), cpu_ns};
  Node *place = thread.place;
  if (!scratch_->is_in_operator) {
    bool is_whole = true;
    place = tree_->place(*scratch_, nodeOf(thread), senses.memory, &is_whole);
    if (!place || scratch_->is_garbled) {
      counts_.lost.fetch_add(1, std::memory_order_relaxed);
      thread.is_waiting = false; // looked at again next time
      return true;
    }
    counts_.cut.fetch_add(is_whole ? 0 : 1, std::memory_order_relaxed);
  }
  charge(thread, place, scratch_->is_in_operator ? SampleKind::kInOperator : kind, now,
         waits_for_gil);
  thread.counters.read(&perf_counts_);
  chargeCounters(thread,
                 scratch_->is_in_operator ? tree_->innermost(*scratch_, nodeOf(thread)) : place,
                 kind == SampleKind::kWaiting);
  return true;
}

/// It has not run since it was seen waiting, so it still waits there.
void Sampler::stayWaiting(Thread &thread, uint64_t cpu_ns) {
  ThreadClocks now = thread.account.last();
  now.wall_ns = monotonicNs();
  now.cpu_ns = cpu_ns;
  if (thread.recorder) {
    now.operator_ns = toNs(thread.recorder->view(ticks()).operator_ticks);
  }
  charge(thread, thread.place,
         thread.waits_in_operator ? SampleKind::kInOperator : SampleKind::kWaiting, now,
         thread.waits_for_gil);
}

/// A thread without Python has no place but itself, and what it waits for is nobody's business; one
/// that cannot be asked is charged where it was seen last.
void Sampler::chargeWithoutPlace(Thread &thread, uint64_t cpu_ns) {
  ThreadClocks now = thread.account.last();
  uint64_t wall_ns = monotonicNs();
  thread.seen_cpu_ns = cpu_ns;
  thread.counters.read(&perf_counts_);
  chargeCounters(thread, nodeOf(thread), false);
  if (thread.is_identified) {
    LevelView levels = thread.recorder ? thread.recorder->view(ticks()) : LevelView();
    now = {wall_ns, toNs(levels.operator_ticks), cpu_ns};
    charge(thread, nodeOf(thread),
           levels.is_in_operator ? SampleKind::kInOperator : SampleKind::kRunning, now, false);
    return;
  }
  add(nodeOf(thread), {cpu_ns - now.cpu_ns, 0}, SampleKind::kRunning, false);
  thread.account = ThreadAccount({wall_ns, 0, cpu_ns});
}

/// The thread has ended, or the session: charge what is owed. A thread that lives on is named when
/// the tree is read.
void Sampler::forget(Thread &thread, bool has_ended) {
  if (thread.is_identified) {
    add(thread.place, thread.account.settle(), SampleKind::kRunning, false);
  }
  closeCounters(thread);
  thread.counters.settleAll([&](const PerfEvent &event, uint64_t value) {
    tree_->addTo(thread.is_identified ? thread.place : nodeOf(thread),
                 MetricRegistry::instance().id(event.metric), value);
  });
  if (has_ended) {
    ThreadNames::instance().end(thread.serial);
  }
  if (thread.slot != SampleSlots::kMost) {
    free_slots_.push_back(thread.slot);
  }
}

// -- accounts

void Sampler::charge(Thread &thread, Node *place, SampleKind kind, const ThreadClocks &now,
                     bool is_about_gil) {
  ChargedTime time = thread.account.charge(kind, now);
  if (kind != SampleKind::kInOperator) {
    thread.place = place;
    add(place, time, kind, is_about_gil);
  }
}

void Sampler::add(Node *place, ChargedTime time, SampleKind kind, bool is_about_gil) {
  if (time.cpu_ns > 0) {
    tree_->addTo(place, cpu_metric_, time.cpu_ns);
    if (is_about_gil && kind == SampleKind::kRunning) {
      tree_->addTo(place, gil_metric_, time.cpu_ns);
    }
  }
  if (time.wait_ns > 0) {
    tree_->addTo(place, wait_metric_, time.wait_ns);
    if (kind == SampleKind::kReady) {
      tree_->addTo(place, ready_metric_, time.wait_ns);
    } else if (is_about_gil && kind == SampleKind::kWaiting) {
      tree_->addTo(place, gil_wait_metric_, time.wait_ns);
    }
  }
}

/// After a pause: what a thread did during it is not counted.
void Sampler::openCounters() {
  for (auto &[number, thread] : threads_) {
    openCounters(*thread);
  }
}

void Sampler::openCounters(Thread &thread) {
  if (perf_events_.empty()) {
    return;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files); // the sampler's own files need room, too
  int error =
      (counted_threads_ + 1) * perf_events_.size() + kSpareFiles > files.rlim_cur ? EMFILE : 0;
  bool has_room = error == 0 && counted_threads_ < kMostCountedThreads;
  if (has_room) {
    error = thread.counters.open(thread.number, perf_events_);
  }
  thread.is_counted = has_room && error == 0;
  counted_threads_ += thread.is_counted ? 1 : 0;
  if (thread.is_counted) {
    perf_counts_.threads.fetch_add(1, std::memory_order_relaxed);
  } else if (error != ESRCH) { // it is gone
    perf_counts_.threads_refused.fetch_add(1, std::memory_order_relaxed);
    perf_counts_.error.store(error, std::memory_order_relaxed);
  }
}

/// Their descriptors go with the sampler's thread.
void Sampler::closeCounters() {
  for (auto &[number, thread] : threads_) {
    closeCounters(*thread);
  }
}

void Sampler::closeCounters(Thread &thread) {
  if (thread.is_counted) {
    thread.counters.read(&perf_counts_);
    thread.counters.close();
    thread.is_counted = false;
    --counted_threads_;
  }
}

void Sampler::chargeCounters(Thread &thread, Node *place, bool is_waiting) {
  thread.counters.settle(is_waiting, [&](const PerfEvent &event, uint64_t value) {
    tree_->addTo(place, MetricRegistry::instance().id(event.metric), value);
  });
}

Node *Sampler::nodeOf(const Thread &thread) {
  return tree_->thread(thread.recorder, thread.name, thread.serial);
}

uint64_t Sampler::toNs(uint64_t ticks) const {
  return static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick_);
}

} // namespace deepcontext
