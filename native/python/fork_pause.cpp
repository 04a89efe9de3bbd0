#include "python/fork_pause.h"

#include <algorithm>
#include <ctime>

#include "core/guard.h"
#include "core/thread.h"
#include "python/gil_release.h"

namespace deepcontext {

namespace {

// os.fork() warns when the process has more than one thread.
constexpr bool kForkCountsThreadsAfterHooks = PY_VERSION_HEX >= 0x030D0000;

// Between two checks whether a thread has ended: it ends at once, or when its callback returns.
constexpr timespec kBetweenLooks{0, 100'000};
// Forks end within milliseconds, if their hooks do not wait for anything.
constexpr int kMostLooks = 10'000;

/// Whether `frame` is running, now or further down the stack of this thread.
bool isOnStack(const PyFrameObject *frame) {
  PyFrameObject *current = PyEval_GetFrame();
  Py_XINCREF(current);
  while (current && current != frame) {
    PyFrameObject *back = PyFrame_GetBack(current);
    Py_DECREF(current);
    current = back;
  }
  bool is_found = current != nullptr;
  Py_XDECREF(current);
  return is_found;
}

} // namespace

ForkPause &ForkPause::instance() {
  static ForkPause *const pause = new ForkPause();
  return *pause;
}

void ForkPause::pause() {
  forking_threads_.push_back(PyThread_get_thread_ident());
  bool is_needed = std::any_of(threads_.begin(), threads_.end(),
                               [](const PausableThread *thread) { return thread->isStarted(); });
  if (is_needed) {
    PyObject *caller = reinterpret_cast<PyObject *>(PyEval_GetFrame());
    Py_XSETREF(forking_, Py_XNewRef(caller));
  }
  for (PausableThread *thread : threads_) {
    thread->pause();
  }
  waitForEnding();
}

void ForkPause::join(std::thread ending) {
  ++ending_;
  {
    GilRelease release;
    ending.join();
  }
  --ending_;
}

bool ForkPause::isForkingElsewhere() const {
  unsigned long self = PyThread_get_thread_ident();
  return std::any_of(forking_threads_.begin(), forking_threads_.end(),
                     [self](unsigned long thread) { return thread != self; });
}

bool ForkPause::waitToBegin() {
  for (int looks = 0; isForkingElsewhere(); ++looks) {
    if (looks == kMostLooks) {
      return false;
    }
    GilRelease release;
    nanosleep(&kBetweenLooks, nullptr);
  }
  ++ending_;
  return true;
}

void ForkPause::waitForEnding() {
  while (ending_ > 0) {
    GilRelease release;
    nanosleep(&kBetweenLooks, nullptr);
  }
}

void ForkPause::resume() {
  // If this is not the main thread, the process has two threads in any case.
  bool is_late = kForkCountsThreadsAfterHooks && forking_ && isMainThread();
  if (!is_late || Py_AddPendingCall(Guarded<resumeWhenForked>::call, this) != 0) {
    resumeNow();
  }
}

int ForkPause::resumeWhenForked(void *self) {
  auto *pause = static_cast<ForkPause *>(self);
  auto *caller = reinterpret_cast<PyFrameObject *>(pause->forking_);
  bool is_forking = caller && PyEval_GetFrame() != caller && isOnStack(caller);
  if (is_forking && Py_AddPendingCall(Guarded<resumeWhenForked>::call, self) == 0) {
    return 0; // a hook of the program runs; its frame lies above that of the caller of os.fork()
  }
  pause->resumeNow();
  return 0;
}

void ForkPause::resumeNow() {
  Py_CLEAR(forking_);
  // There is none if the hooks were registered while the thread was forking.
  auto own =
      std::find(forking_threads_.begin(), forking_threads_.end(), PyThread_get_thread_ident());
  if (own != forking_threads_.end()) {
    forking_threads_.erase(own);
  }
  if (isForking()) {
    return;
  }
  for (PausableThread *thread : threads_) {
    thread->resume();
  }
}

} // namespace deepcontext
