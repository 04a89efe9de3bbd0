#pragma once
// The profiler's threads: how they are started and recognised.
#include <csignal>
#include <future>
#include <string_view>
#include <sys/prctl.h>
#include <thread>
#include <utility>

#include "core/guard.h"

namespace deepcontext {

constexpr char kInternalThreadName[] = "deepcontext"; // at most 15 characters

/// Give the calling thread the profiler's name: for tools that list the process's threads, and for
/// the sampler, which skips such threads.
inline void nameInternalThread() {
  prctl(PR_SET_NAME, kInternalThreadName);
}

/// While this exists, threads started by the calling thread inherit the profiler's name and a mask
/// that blocks every signal of the program.
class InternalThreadInheritance {
public:
  InternalThreadInheritance() {
    prctl(PR_GET_NAME, name_);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals_);
    nameInternalThread();
  }
  ~InternalThreadInheritance() {
    prctl(PR_SET_NAME, name_);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  InternalThreadInheritance(const InternalThreadInheritance &) = delete;
  InternalThreadInheritance &operator=(const InternalThreadInheritance &) = delete;

private:
  char name_[16] = {};
  sigset_t signals_;
};

/// Start a thread with the profiler's name that takes none of the program's signals. `work` begins
/// when the calling thread has its name back; until then the sampler would skip the calling thread.
///
/// Not joinable if the process may have no more threads (RLIMIT_NPROC, a container's limit) or has
/// no memory. Throws no exception, because callers are called from C. A thread that runs out of
/// memory ends.
template <typename Work> std::thread startInternalThread(Work work) {
  std::thread thread;
  try {
    std::promise<void> is_restored;
    {
      InternalThreadInheritance inherited;
      thread = std::thread([work = std::move(work), restored = is_restored.get_future()]() mutable {
        restored.wait();
        guarded(work);
      });
    }
    is_restored.set_value();
  } catch (const std::exception &) { // not joinable: no thread was started
  }
  return thread;
}

inline bool isInternalThreadName(std::string_view name) {
  return name == kInternalThreadName;
}

} // namespace deepcontext
