#pragma once
// The lock of the profiler's tables; counts the locks that the calling thread holds.
#include <mutex>

namespace deepcontext {

/// A std::mutex that counts how many of them the calling thread holds.
///
/// A thread that holds one makes and destroys no Python object, runs no Python code and does not
/// wait for the GIL, because a thread that waits for the lock may hold the GIL (decision 14). A
/// test checks the count at every allocation of the interpreter.
class Mutex {
public:
  void lock() {
    mutex_.lock();
    ++held_;
  }
  void unlock() {
    --held_;
    mutex_.unlock();
  }

  /// Number of these locks that the calling thread holds.
  static int heldByThisThread() { return held_; }

private:
  std::mutex mutex_;
  // `__thread`, because `thread_local` checks for an initialiser at each access.
  static inline __thread int held_ __attribute__((tls_model("initial-exec"))) = 0;
};

} // namespace deepcontext
