#pragma once
// A native thread that triggers snapshots.
#include <Python.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "python/fork_pause.h"

namespace deepcontext {

/// Calls `callback()` with the GIL after the first interval, and then after each interval.
///
/// A C++ thread, so that threading.enumerate() does not list it. It is joined before a fork made by
/// Python, which would otherwise warn about a multi-threaded process. It takes no signals and
/// changes no disposition: a signal that kills the program kills it at once, and data since the
/// last snapshot is lost (docs/decisions/0008).
class Watcher final : public PausableThread {
public:
  static Watcher &instance();

  /// GIL held.
  void start(PyObject *callback, double first_seconds, double interval_seconds);
  void stop();
  /// Seconds between two snapshots from now on.
  void setInterval(double seconds) {
    interval_.store(std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
  }
  /// How often its thread could not be started; then there is no snapshot until the next fork.
  uint64_t threadsRefused() const { return threads_refused_; }
  bool isStarted() const override { return is_started_; }
  void pause() override;
  void resume() override;
  /// In a forked child: no thread. Async-signal-safe.
  void abandonInChild();

private:
  Watcher();
  void run(uint32_t turn);
  void sleep(uint32_t turn);
  void call();
  void join();

  PyObject *callback_ = nullptr;
  std::atomic<std::chrono::nanoseconds> interval_{};
  std::chrono::steady_clock::time_point next_;
  std::thread thread_;
  uint64_t threads_refused_ = 0; // GIL held
  // of the thread that should run; other threads end when they see it
  std::atomic<uint32_t> turn_{0};
  bool is_started_ = false;
};

} // namespace deepcontext
