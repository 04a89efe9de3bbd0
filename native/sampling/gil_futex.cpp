#include "sampling/gil_futex.h"

#include <Python.h>

#include <csignal>
#include <ctime>
#include <sys/syscall.h>

#include "core/internal_thread.h"
#include "core/thread.h"
#include "python/fork_pause.h"

namespace deepcontext {

namespace {

constexpr int kLooks = 400;
constexpr timespec kBetweenLooks{0, 50'000};
// Threads wait on different words of one condition variable and its mutex, which are adjacent.
constexpr uint64_t kReach = 96;

} // namespace

void GilFutex::begin() {
  if (isKnown() || ForkPause::instance().isForking()) {
    return; // a later session will find it
  }
  waiter_ = 0;
  thread_ = startInternalThread([this] {
    waiter_ = kernelThread();
    PyGILState_Release(PyGILState_Ensure());
  });
}

void GilFutex::watch(const KernelThreads &kernel) {
  uint64_t before = 0;
  for (int look = 0; look < kLooks && !isKnown(); ++look) {
    std::optional<ThreadState> state;
    if (int waiter = waiter_.load()) {
      state = kernel.state(waiter);
    }
    bool is_asleep = state && !state->is_running && state->system_call == SYS_futex;
    if (is_asleep && state->argument == before) {
      address_ = before;
      return;
    }
    before = is_asleep ? state->argument : 0;
    nanosleep(&kBetweenLooks, nullptr);
  }
}

void GilFutex::finish() {
  if (thread_.joinable()) {
    ForkPause::instance().join(std::move(thread_));
  }
}

bool GilFutex::isWaitedFor(const ThreadState &state) const {
  return isKnown() && state.system_call == SYS_futex && state.argument + kReach > address_ &&
         state.argument < address_ + kReach;
}

} // namespace deepcontext
