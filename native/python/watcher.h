#pragma once
// A native thread that asks for snapshots and turns a deadly signal into a last write.
#include <Python.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <semaphore.h>
#include <thread>
#include <vector>

#include "python/fork_pause.h"

namespace deepcontext {

/// Calls `callback(reason)` with the GIL: "snapshot" each interval, or a signal's name before the
/// process dies of it.
///
/// A plain C++ thread, so that threading.enumerate() does not show it; it is joined before a fork
/// made by Python, which would otherwise warn about a multi-threaded process. Signals are only
/// taken while their disposition is the default one, by a C handler that Python's
/// signal.getsignal() does not see. What was interrupted is held up; after the callback the default
/// disposition is restored and the signal is sent again, so that the process dies of it as it would
/// have without us.
class Watcher final : public PausableThread {
public:
  static Watcher &instance();

  /// GIL held. `signals` are watched where their disposition is the default.
  void start(PyObject *callback, double first_seconds, double interval_seconds,
             const std::vector<int> &signals);
  void stop();
  /// Seconds between two snapshots from now on.
  void setInterval(double seconds) {
    interval_.store(std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
  }
  /// How often its thread could not be started: no snapshot and no last write until the next fork.
  uint64_t threadsRefused() const { return threads_refused_; }
  bool isStarted() const override { return is_started_; }
  void pause() override;
  void resume() override;
  /// In a forked child: no thread, no handler of ours. Async-signal-safe.
  void abandonInChild();

private:
  Watcher();
  void run(uint64_t turn);
  bool isOver(uint64_t turn);
  void call(const char *reason);
  void die(int signal_number);
  void join();
  void restoreSignals();
  static void onSignal(int signal_number);
  static void holdUntilDead(int signal_number);
  static int holdWithoutGil(void *signal_number);

  PyObject *callback_ = nullptr;
  std::atomic<std::chrono::nanoseconds> interval_{};
  std::chrono::steady_clock::time_point next_;
  std::vector<int> taken_;
  std::thread thread_;
  uint64_t threads_refused_ = 0;  // GIL held
  std::atomic<uint64_t> turn_{0}; // of the thread that is to run; others end when they see it
  std::atomic<int> pending_signal_{0};
  std::atomic<pid_t> writer_{0};      // thread id
  std::atomic<bool> is_dying_{false}; // of a signal that was announced
  std::atomic<std::chrono::steady_clock::time_point> latest_death_{}; // zero: no signal yet
  sem_t wake_;    // never destroyed: a signal may arrive at any time
  pid_t pid_ = 0; // of the process that was started in
  bool is_started_ = false;
};

} // namespace deepcontext
