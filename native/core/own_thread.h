#pragma once
// The threads that the profiler itself runs: how they start, and how they are told apart.
#include <csignal>
#include <string_view>
#include <sys/prctl.h>
#include <thread>
#include <utility>

namespace deepcontext {

constexpr char kOwnThreadName[] = "deepcontext"; // the kernel keeps 15 characters

/// Give the calling thread our name: for whoever looks at the process from outside, and for the
/// sampler, which leaves such threads out.
inline void nameOwnThread() {
  prctl(PR_SET_NAME, kOwnThreadName);
}

/// Start a thread under our name that takes none of the program's signals.
template <typename Work> std::thread startOwnThread(Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); // inherited
  std::thread thread([work = std::move(work)]() mutable {
    nameOwnThread();
    work();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

inline bool isOwnThreadName(std::string_view name) {
  return name == kOwnThreadName;
}

} // namespace deepcontext
