#pragma once
// A native thread that samples where all other threads of the process spend their time.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/call_filters.h"
#include "core/condition.h"
#include "python/fork_pause.h"
#include "sampling/counted_threads.h"
#include "sampling/gil_futex.h"
#include "sampling/sampled_thread.h"
#include "sampling/sampler_counts.h"
#include "sampling/slot_pool.h"

namespace deepcontext {

struct Senses;
class MemoryReader;
class ThreadVisits;

/// Visits all threads some hundred times a second (see `ThreadVisits`).
///
/// Takes neither the GIL nor a lock of the interpreter. Like the watcher it ends before a fork made
/// by Python. Start and stop with the GIL held.
class Sampler final : public PausableThread {
public:
  static Sampler &instance();

  /// "" or the reason why nothing can be sampled.
  std::string start(double rate_hz);
  /// Choose what is counted in sessions that start from now on.
  void choosePerfEvents(std::vector<PerfAnswer> events) { counted_.choose(std::move(events)); }
  void stop();
  /// Since when the main thread's time is charged, by `monotonicNs`.
  uint64_t begunNs() const { return begun_ns_; }
  const SamplerCounts &counts() const { return counts_; }
  const PerfCounts &perfCounts() const { return counted_.counts(); }
  /// The reason why running threads could not be asked, or why sampling ended early; "" for none.
  std::string limitation() const;

  /// Whether waits for the GIL can be recognised.
  bool knowsGil() const { return gil_.isKnown(); }

  bool isStarted() const override { return is_started_; }
  void pause() override;
  void resume() override;
  /// In a forked child: no thread, no signal. Async-signal-safe.
  void abandonInChild();

private:
  Sampler();
  ~Sampler() = delete;
  // -- the thread's life
  void run(uint32_t turn);
  void sample(uint32_t turn, bool is_first);
  void sleep(uint32_t turn);
  void setNextRound();
  void join();
  void finishAll();

  // -- a round
  bool mayGoOn();
  void visitAll(const Senses &senses);
  void findThreads(const Senses &senses);
  void addThread(const Senses &senses, int number);

  double rate_hz_ = 0;
  std::thread thread_;
  // of the thread that should run; other threads end when they see it
  std::atomic<uint32_t> turn_{0};
  bool is_started_ = false;
  bool is_opening_ = false;  // the next thread is the first of a session
  Event opened_;             // when that thread knows whether it can work
  std::string cannot_open_;  // written before that
  uint64_t begun_ns_ = 0;    // likewise
  bool may_ask_ = false;     // the signal was free at the start of the session
  bool is_filtered_ = false; // a filter of system calls would end the process at the signal
  CallFilters filters_;      // of the sampler's thread, with which calls were tried
  std::atomic<bool> was_filtered_{false}; // a later one ends the process at a call of the sampler
  std::atomic<bool> was_taken_{false};    // the program has used it since
  bool was_refused_ = false;              // the process may have no more threads; GIL held
  GilFutex gil_;
  SlotPool slots_;
  // Opened in the program's table of descriptors. Not freed, because a signal may be pending.
  const MemoryReader *handlers_memory_ = nullptr;
  CountedThreads counted_;
  SamplerCounts counts_;
  std::unique_ptr<ThreadVisits> visits_; // of the running or last session
  std::unordered_map<int, std::unique_ptr<SampledThread>> threads_; // by the kernel's number
  uint64_t round_ = 0;
  // Kept over a pause, so that a program that forks often is sampled, too.
  uint64_t next_round_ns_ = 0;
  uint64_t population_ = 0; // at the last search for threads
  uint64_t random_ = 88172645463325252u;
};

} // namespace deepcontext
