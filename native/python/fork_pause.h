#pragma once
// Ends our own threads for the moment of a fork made by Python.
#include <Python.h>

#include <thread>
#include <vector>

namespace deepcontext {

/// A thread of ours that is not to exist while the process forks.
class PausableThread {
public:
  /// Whether it is to run at all, paused or not.
  virtual bool isStarted() const = 0;
  /// GIL held. End the thread, keep everything else. May be called when it is paused.
  virtual void pause() = 0;
  /// GIL held. Start it again; does nothing when it runs or has been stopped meanwhile.
  virtual void resume() = 0;

protected:
  ~PausableThread() = default;
};

/// os.fork() warns when the process has more than one thread; the ones we added must not be the
/// reason. Threads may fork at once: ours are gone until the last one has, because one that asks
/// for the GIL during a fork holds a lock of CPython 3.11's that the child would wait for for ever.
/// GIL held throughout.
class ForkPause {
public:
  static ForkPause &instance();

  /// A thread that lives as long as the process.
  void add(PausableThread *thread) { threads_.push_back(thread); }
  void pause();
  void resume();
  /// Wait for a thread that may ask for the GIL, which is given up meanwhile. A fork in another
  /// thread waits as well.
  void join(std::thread ending);
  /// Wait for the threads that others join, with the GIL given up.
  void waitForEnding();
  /// Whether a thread of the program is about to fork: none of ours may start.
  bool isForking() const { return forks_ > 0; }
  /// In a forked child. Async-signal-safe.
  void abandonInChild() {
    forks_ = 0;
    ending_ = 0;
  }

private:
  void resumeNow();
  static int resumeWhenForked(void *self);

  std::vector<PausableThread *> threads_;
  int ending_ = 0;              // threads being joined
  int forks_ = 0;               // that have begun and not ended
  PyObject *forking_ = nullptr; // the frame that calls os.fork(), until it has returned
};

} // namespace deepcontext
