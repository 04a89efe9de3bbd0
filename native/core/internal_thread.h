#pragma once
// The threads that the profiler itself runs: how they start, and how they are told apart.
#include <csignal>
#include <future>
#include <string_view>
#include <sys/prctl.h>
#include <thread>
#include <utility>

#include "core/guard.h"

namespace deepcontext {

constexpr char kInternalThreadName[] = "deepcontext"; // the kernel keeps 15 characters

/// Give the calling thread our name: for whoever looks at the process from outside, and for the
/// sampler, which leaves such threads out.
inline void nameInternalThread() {
  prctl(PR_SET_NAME, kInternalThreadName);
}

/// While it exists, a thread that the calling one starts has our name and takes none of the
/// program's signals: from its first moment, as it inherits both.
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

/// Start a thread under our name that takes none of the program's signals. It begins when the
/// calling thread has its own name again: the sampler would take it for one of ours.
///
/// Not joinable where the process may have no more threads (RLIMIT_NPROC, a container's limit) or
/// no more memory: the caller does without, because it is called from C that no exception may pass.
/// A thread that runs out of memory ends.
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
  } catch (const std::exception &) { // no thread was started
  }
  return thread;
}

inline bool isInternalThreadName(std::string_view name) {
  return name == kInternalThreadName;
}

} // namespace deepcontext
