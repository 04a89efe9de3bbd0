#pragma once
// Calls into a vendor's library that may hang.
#include <functional>

namespace deepcontext::gpu {

/// Run `work` on a new thread and wait at most `seconds` for it. False when it has not returned:
/// the thread remains inside the library, so `work` must own everything it uses. Where no thread
/// can be started, `work` runs on the calling thread without a deadline.
bool runWithDeadline(const std::function<void()> &work, double seconds);

/// Whether the calling thread is the profiler's: its calls are not the program's.
bool isInternalThread();
/// Mark the calling thread as the profiler's.
void markInternalThread();

/// While this exists, the calling thread counts as the profiler's.
class OwnCalls {
public:
  OwnCalls();
  ~OwnCalls();
  OwnCalls(const OwnCalls &) = delete;
  OwnCalls &operator=(const OwnCalls &) = delete;

private:
  bool was_internal_;
};

} // namespace deepcontext::gpu
