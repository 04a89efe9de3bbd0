#pragma once
// A native thread that finds out where all other threads of the process spend their time.
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <semaphore.h>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "python/fork_pause.h"
#include "sampling/context_tree.h"
#include "sampling/gil_futex.h"
#include "sampling/kernel_threads.h"
#include "sampling/perf_counters.h"
#include "sampling/remote_context.h"
#include "sampling/thread_account.h"

namespace deepcontext {

/// What became of the samples of a session.
struct SamplerCounts {
  std::atomic<uint64_t> rounds{0};     // visits to all threads
  std::atomic<uint64_t> running{0};    // answered by the thread itself
  std::atomic<uint64_t> waiting{0};    // read from a thread that did not run
  std::atomic<uint64_t> lost{0};       // led nowhere; their time went to the next sample
  std::atomic<uint64_t> cut{0};        // lack their innermost frames: the code was freed meanwhile
  std::atomic<uint64_t> unanswered{0}; // the thread held the signal back, or ended
  std::atomic<uint64_t> threads{0};
  std::atomic<uint64_t> threads_refused{0};
  std::atomic<uint64_t> own_cpu_ns{0}; // of the sampler's thread
};

/// Visits all threads some hundred times a second. A thread that has used no processor time since
/// the last visit is where it was. One that has and runs is asked by a signal, which its handler
/// answers with its frames. One that waits is read without a signal, so that no system call of the
/// program is interrupted. What each visit charges is up to `ThreadAccount`.
///
/// Takes neither the GIL nor a lock of the interpreter. Like the watcher it is ended before a fork
/// by Python. Start and stop with the GIL held.
class Sampler final : public PausableThread {
public:
  static Sampler &instance();

  /// "" or the reason why nothing can be sampled.
  std::string start(double rate_hz);
  /// What is counted in sessions that start from now on.
  void choosePerfEvents(std::vector<PerfAnswer> events) { perf_events_ = std::move(events); }
  void stop();
  const SamplerCounts &counts() const { return counts_; }
  const PerfCounts &perfCounts() const { return perf_counts_; }
  /// Why running threads cannot be asked, or "".
  std::string limitation() const;

  /// Whether waits for the GIL can be told from others.
  bool knowsGil() const { return gil_.isKnown(); }

  bool isStarted() const override { return is_started_; }
  void pause() override;
  void resume() override;
  /// In a forked child: no thread, no signal. Async-signal-safe.
  void abandonInChild();

private:
  struct Senses;
  struct Thread;

  Sampler();
  ~Sampler() = delete;
  // -- the thread's life
  void run(uint32_t turn);
  void sleep(uint32_t turn);
  void setNextRound();
  void join();
  void finishAll();

  // -- a round
  void visitAll(const Senses &senses);
  void findThreads(const Senses &senses);
  void addThread(const Senses &senses, int number);
  void identify(const Senses &senses, Thread &thread);
  bool visit(const Senses &senses, Thread &thread);
  void look(const Senses &senses, Thread &thread, uint64_t cpu_ns);
  void ask(const Senses &senses, Thread &thread);
  bool mayAsk(const Senses &senses, Thread &thread);
  void take(const Senses &senses, Thread &thread);
  bool readStill(const Senses &senses, Thread &thread, uint64_t cpu_ns, SampleKind kind,
                 bool waits_for_gil);
  void stayWaiting(Thread &thread, uint64_t cpu_ns);
  void chargeWithoutPlace(Thread &thread, uint64_t cpu_ns);
  void forget(Thread &thread, bool has_ended);

  // -- accounts
  void charge(Thread &thread, Node *place, SampleKind kind, const ThreadClocks &now,
              bool is_about_gil);
  void add(Node *place, ChargedTime time, SampleKind kind, bool is_about_gil);
  void openCounters();
  void closeCounters();
  void openCounters(Thread &thread);
  void closeCounters(Thread &thread);
  void chargeCounters(Thread &thread, Node *place, bool is_waiting);
  Node *nodeOf(const Thread &thread);
  uint64_t toNs(uint64_t ticks) const;

  double rate_hz_ = 0;
  std::thread thread_;
  std::atomic<uint32_t> turn_{0}; // of the thread that is to run; others end when they see it
  bool is_started_ = false;
  bool is_opening_ = false;            // the thread to be started is a session's first
  sem_t opened_;                       // posted once by that one, when it knows whether it can work
  std::string cannot_open_;            // written before that
  bool may_ask_ = false;               // the signal was free when the session started
  std::atomic<bool> was_taken_{false}; // the program has taken it over since
  std::unique_ptr<RemotePython> python_;
  std::unique_ptr<ContextTree> tree_;
  std::unique_ptr<SampledContext> scratch_;
  GilFutex gil_;
  std::unordered_map<int, std::unique_ptr<Thread>> threads_;
  std::vector<uint32_t> free_slots_;
  uint32_t slot_count_ = 0;
  uint64_t round_ = 0;
  uint64_t next_round_ns_ =
      0;                    // outlasts a pause: a program that forks all the time is sampled, too
  uint64_t population_ = 0; // when threads were looked for last
  double ns_per_tick_ = 1;
  uint64_t random_ = 88172645463325252u;
  SamplerCounts counts_;
  std::vector<PerfAnswer> perf_events_;
  PerfCounts perf_counts_;
  uint32_t counted_threads_ = 0; // whose counters are open
  uint16_t cpu_metric_;
  uint16_t wait_metric_;
  uint16_t gil_metric_;
  uint16_t gil_wait_metric_;
  uint16_t ready_metric_;
};

} // namespace deepcontext
