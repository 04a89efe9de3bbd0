#pragma once
// Threads that run a Python function for the profiler.
#include <Python.h>

#include <memory>

#include "core/condition.h"

namespace deepcontext {

/// Calls a Python function on a new thread, which inherits name and signal mask of the calling
/// thread. GIL held in every function.
///
/// Not through Python's `_thread`: gevent replaces what starts threads and what locks them, so that
/// the "thread" would be a greenlet of the calling thread.
class PythonThread {
public:
  /// Start the thread, once; false if the process may have no more threads. What `work()` raises is
  /// printed, as of any thread.
  bool start(PyObject *work);
  /// Wait for its end; false if it has not ended after `seconds`. True if it was never started.
  bool join(double seconds) const;

private:
  std::shared_ptr<Event> ended_;
};

} // namespace deepcontext
