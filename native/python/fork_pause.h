#pragma once
// Ends the profiler's threads during a fork made by Python.
#include <Python.h>

#include <thread>
#include <vector>

namespace deepcontext {

/// A thread of the profiler that must not exist while the process forks.
class PausableThread {
public:
  /// Whether the thread was started and not stopped; it may be paused.
  virtual bool isStarted() const = 0;
  /// GIL held. End the thread and keep everything else. May be called when it is paused.
  virtual void pause() = 0;
  /// GIL held. Start it again; does nothing when it runs or has been stopped meanwhile.
  virtual void resume() = 0;

protected:
  ~PausableThread() = default;
};

/// os.fork() warns when the process has more than one thread; the profiler's threads must not be
/// the cause. Several threads may fork at the same time: the profiler's threads start again after
/// the last fork, because a thread that waits for the GIL during a fork holds a lock of CPython
/// 3.11 that the child would wait for forever. GIL held in every function.
class ForkPause {
public:
  static ForkPause &instance();

  /// A thread that lives as long as the process.
  void add(PausableThread *thread) { threads_.push_back(thread); }
  void pause();
  void resume();
  /// Join a thread that may ask for the GIL, which is released meanwhile. A fork in another thread
  /// waits, too.
  void join(std::thread ending);
  /// Wait for the threads that other threads join or start, with the GIL released.
  void waitForEnding();
  /// A thread of the profiler is about to ask for its first thread state. Until `hasBegun`, which
  /// it calls with the GIL, forks wait; and this waits for forks of other threads. False, and no
  /// thread may begin, if a fork takes long: it may wait for what the calling thread holds.
  ///
  /// A fork of the calling thread is not waited for: a signal handler has interrupted its hooks.
  bool waitToBegin();
  void hasBegun() { --ending_; }
  /// Whether a thread of the program is about to fork: no thread of the profiler may start.
  bool isForking() const { return !forking_threads_.empty(); }
  /// In a forked child. Async-signal-safe.
  void abandonInChild() {
    forking_threads_.clear();
    ending_ = 0;
  }

private:
  bool isForkingElsewhere() const;
  void resumeNow();
  static int resumeWhenForked(void *self);

  std::vector<PausableThread *> threads_;
  int ending_ = 0;                             // threads being joined or started
  std::vector<unsigned long> forking_threads_; // one for each fork that has not ended
  PyObject *forking_ = nullptr; // the frame that calls os.fork(), until it has returned
};

} // namespace deepcontext
