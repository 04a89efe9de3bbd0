#include "sampling/sampler.h"

#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <new>
#include <unistd.h>

#include "core/clock.h"
#include "core/internal_thread.h"
#include "core/system_call.h"
#include "core/thread.h"
#include "core/thread_label.h"
#include "python/code_table.h"
#include "sampling/senses.h"
#include "sampling/signal_handler.h"
#include "sampling/thread_names.h"
#include "sampling/thread_visits.h"

namespace deepcontext {

namespace {

// at least: one thread may have started while another ended
constexpr uint64_t kRoundsBetweenSearches = 25;
constexpr char kNoThread[] =
    "the process may have no more threads (ulimit -u, or a container's limit)";
constexpr char kEndedEarly[] = "the sampling thread ran out of memory";
constexpr char kLate[] = "the sampling thread did not begin in time";
constexpr double kLongestOpeningS = 10;

uint64_t internalCpuNs() {
  return KernelThreads::cpuNs(kernelThread()).value_or(0);
}

} // namespace

Sampler::Sampler() {
  ForkPause::instance().add(this);
}

Sampler &Sampler::instance() {
  static Sampler *const sampler = new Sampler();
  return *sampler;
}

std::string Sampler::start(double rate_hz) {
  stop(); // whatever an earlier session left
  if (!CodeTable::instance().isWatching()) {
    return "freed code objects cannot be noticed, so a sample could name the wrong function";
  }
  rate_hz_ = rate_hz;
  begun_ns_ = 0;
  round_ = 0;
  threads_.clear();
  slots_.begin();
  counts_.clear();
  counted_.begin();
  ThreadNames::instance().clear();
  if (!handlers_memory_ || !handlers_memory_->isOfThisProcess()) {
    handlers_memory_ = new MemoryReader();
  }
  visits_ = std::make_unique<ThreadVisits>(
      VisitParts{gil_, slots_, counted_, counts_, *handlers_memory_});
  was_taken_ = false;
  was_filtered_ = false;
  was_refused_ = false;
  filters_ = CallFilters::of(kernelThread());
  visits_->setFilters(filters_);
  is_filtered_ = isFatal(OwnCall::kAskThread);
  may_ask_ = !is_filtered_ && takeSampleSignal();
  is_started_ = true;
  setNextRound();
  gil_.begin();
  is_opening_ = true;
  opened_.clear();
  resume();
  bool is_late = thread_.joinable() && !opened_.waitFor(kLongestOpeningS);
  is_opening_ = false;
  if (is_late) {
    join(); // it writes the reason
  }
  // Before other threads can fork, which starts another thread.
  std::string reason = was_refused_ ? kNoThread : is_late ? kLate : cannot_open_;
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
  if (was_filtered_.load(std::memory_order_relaxed)) {
    return "sampling ended early: the program has set a filter of system calls (seccomp) that "
           "would "
           "have ended it";
  }
  if (is_filtered_) {
    return "a filter of system calls (seccomp) would end the program at a signal of the sampler: "
           "running threads are charged without a line";
  }
  if (counts_.filtered.load(std::memory_order_relaxed) > 0) {
    return "the program has set a filter of system calls (seccomp): running threads were charged "
           "without a line afterwards";
  }
  if (!may_ask_) {
    return "the program handles SIGURG itself: running threads are charged without a line";
  }
  if (was_taken_.load(std::memory_order_relaxed)) {
    return "the program took over SIGURG: running threads were charged without a line while it had "
           "it";
  }
  if (was_refused_) {
    return std::string("nothing was sampled after a fork: ") + kNoThread;
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
  thread_ = startInternalThread([this, turn] { run(turn); });
  was_refused_ = was_refused_ || !thread_.joinable();
}

void Sampler::join() {
  if (!thread_.joinable()) {
    return;
  }
  turn_.fetch_add(1);
  systemCall(SYS_futex, &turn_, FUTEX_WAKE_PRIVATE, 1);
  thread_.join(); // which never waits for the GIL
}

void Sampler::abandonInChild() {
  if (!is_started_) {
    return;
  }
  is_started_ = false;
  if (may_ask_) {
    returnSampleSignal();
  }
  new (&thread_) std::thread(); // the handle's thread does not exist here
  new (&opened_) Event();
}

void Sampler::run(uint32_t turn) {
  Event::SetAtEnd at_end(opened_);
  bool is_first = is_opening_;
  cannot_open_ = kEndedEarly; // until the first search has succeeded
  std::string reason;
  if (separateDescriptors(&reason)) {
    sample(turn, is_first);
  } else {
    cannot_open_ = reason;
  }
}

void Sampler::sample(uint32_t turn, bool is_first) {
  Senses senses;
  if (!senses.areUsable()) {
    cannot_open_ = "the kernel does not show this process its own threads and memory under /proc";
    return;
  }
  if (is_first) {
    gil_.watch(senses.kernel);
    visits_->beginRound(round_, may_ask_);
    findThreads(senses);
    cannot_open_.clear();
    opened_.set();
  } else {
    // After a pause, during which nothing is counted.
    for (auto &[number, thread] : threads_) {
      counted_.open(*thread);
    }
  }
  uint64_t before = internalCpuNs();
  while (turn_.load() == turn) {
    sleep(turn);
    if (!mayGoOn()) {
      break;
    }
    if (turn_.load() == turn) {
      visitAll(senses);
      setNextRound();
    }
  }
  for (auto &[number, thread] : threads_) { // their descriptors end with this thread
    counted_.close(*thread);
  }
  SamplerCounts::bump(counts_.internal_cpu_ns, internalCpuNs() - before);
}

/// One period from now, plus or minus a fifth, because a program with the same period would always
/// be sampled at the same place.
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
  systemCall(SYS_futex, &turn_, FUTEX_WAIT_PRIVATE, turn, &left);
}

/// After the last round.
void Sampler::finishAll() {
  visits_->beginRound(round_, false);
  for (auto &[number, thread] : threads_) {
    visits_->finish(*thread);
  }
  threads_.clear();
}

// -- a round

/// A filter may be set for all threads at any time; it is tried once.
bool Sampler::mayGoOn() {
  CallFilters now = CallFilters::of(kernelThread());
  if (now != filters_) {
    bool is_fatal = isFatal(OwnCall::kReadMemory) || isFatal(OwnCall::kAskThread);
    was_filtered_.store(is_fatal, std::memory_order_relaxed);
    filters_ = now;
    visits_->setFilters(now);
  }
  return !was_filtered_.load(std::memory_order_relaxed);
}

void Sampler::visitAll(const Senses &senses) {
  ++round_;
  SamplerCounts::bump(counts_.rounds);
  // A program that restored the default does not use the signal: some restore every handler.
  bool has_signal = may_ask_ && (ownsSampleSignal() || takeSampleSignal());
  if (may_ask_ && !has_signal) {
    was_taken_.store(true, std::memory_order_relaxed);
  }
  visits_->beginRound(round_, has_signal);
  if (round_ % kRoundsBetweenSearches == 0 || senses.kernel.population() != population_) {
    findThreads(senses);
  }
  for (auto place = threads_.begin(); place != threads_.end();) {
    SampledThread &thread = *place->second;
    if (thread.next_visit <= round_ && !visits_->visit(senses, thread)) {
      visits_->forget(thread, true);
      place = threads_.erase(place);
    } else {
      ++place;
    }
  }
}

void Sampler::findThreads(const Senses &senses) {
  int self = kernelThread();
  population_ = senses.kernel.population();
  for (int number : senses.kernel.list()) {
    if (number != self && threads_.find(number) == threads_.end()) {
      addThread(senses, number);
    }
  }
}

void Sampler::addThread(const Senses &senses, int number) {
  // The main thread has the profiler's name while it starts one of its threads.
  bool is_main = number == getpid();
  std::string name = is_main ? "MainThread" : senses.kernel.name(number);
  std::optional<uint64_t> cpu_ns = KernelThreads::cpuNs(number);
  if (!cpu_ns || (!is_main && isInternalThreadName(name))) {
    return;
  }
  // A new thread started after the session began, so its earlier time counts.
  uint64_t now = monotonicNs();
  bool is_old = round_ == 0;
  if (is_main && is_old) {
    begun_ns_ = now;
  }
  ThreadClocks start{is_old ? now : now - *cpu_ns, 0, is_old ? *cpu_ns : 0};
  auto thread = std::make_unique<SampledThread>(number, start);
  std::string label = is_main ? name : threadLabel(name, senses.kernel.name(getpid()));
  thread->name = Interner::instance().internBounded(label);
  visits_->begin(senses, *thread, is_old);
  SamplerCounts::bump(counts_.threads);
  counted_.open(*thread);
  threads_.emplace(number, std::move(thread));
}

} // namespace deepcontext
