#pragma once
// The operations of a session: start, snapshot, stop, and what follows an import.
#include <Python.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/condition.h"

namespace deepcontext {

/// Runs operations one at a time, in the order in which they were called, each on a thread of its
/// own for which the caller waits.
///
/// Python runs signal handlers on the main thread, between any two instructions. They interrupt the
/// wait, never an operation. So an operation that a handler calls begins when the interrupted one
/// is complete, and an exception of a handler, such as KeyboardInterrupt, is raised when the
/// operation is complete. A second exception is raised at once, and the operation goes on.
///
/// An operation that another one calls runs inside it. Where the process may have no more threads,
/// or another thread does not end its fork, an operation runs on the calling thread. GIL held in
/// every function unless it says otherwise.
class Operations {
public:
  static Operations &instance();

  /// New reference to what `work()` returns, or null with an exception. `is_exclusive`: says that
  /// no other exclusive operation may be called inside this one; the caller checks it.
  PyObject *run(PyObject *work, bool is_exclusive);
  /// Run `work` on the calling thread, which is one of the profiler's; return None, and do not
  /// wait, if an operation is running or waiting.
  PyObject *tryHere(PyObject *work);

  /// Whether the calling thread is inside an exclusive operation.
  bool isInsideExclusive() const;
  /// Whether a thread, by its Python identifier, waits for an operation.
  bool isWaiting(unsigned long thread) const;

  /// In a forked child: no operation. Async-signal-safe but for the heap.
  void abandonInChild();

  /// While this exists, threads started by an operation inherit name and signal mask of the
  /// operation's caller. Elsewhere they inherit those of the calling thread in any case.
  class AsCaller {
  public:
    AsCaller();
    ~AsCaller();
    AsCaller(const AsCaller &) = delete;
    AsCaller &operator=(const AsCaller &) = delete;

  private:
    char name_[16] = {};
    sigset_t signals_;
  };

private:
  struct Call;

  static void work(const std::shared_ptr<Call> &call);
  PyObject *runHere(PyObject *work, uint64_t ticket, bool is_exclusive);
  PyObject *wait(const std::shared_ptr<Call> &call);
  void endTurn();

  std::vector<unsigned long> waiting_; // threads
  uint64_t next_ = 0;                  // ticket of the next operation
  uint64_t forks_ = 0;                 // between this process and the first one
  bool is_exclusive_ = false;          // of the running operation

  std::mutex
      mutex_; // of `changed_`; held for a few instructions, and the GIL is not waited for inside
  Condition changed_;
  uint64_t serving_ = 0; // ticket of the running operation, or of the next one
};

} // namespace deepcontext
