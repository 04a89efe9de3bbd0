#include "python/watcher.h"

#include <cerrno>
#include <ctime>
#include <new>
#include <utility>

#include "core/internal_thread.h"

namespace deepcontext {

namespace {

timespec toAbsolute(std::chrono::steady_clock::time_point when) {
  auto left = when - std::chrono::steady_clock::now();
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  auto total = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) + left;
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(total);
  timespec absolute;
  absolute.tv_sec = static_cast<time_t>(seconds.count());
  absolute.tv_nsec = static_cast<long>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(total - seconds).count());
  return absolute;
}

} // namespace

Watcher::Watcher() {
  sem_init(&wake_, 0, 0);
  ForkPause::instance().add(this);
}

Watcher &Watcher::instance() {
  static Watcher *const watcher = new Watcher();
  return *watcher;
}

void Watcher::start(PyObject *callback, double first_seconds, double interval_seconds) {
  stop();
  Py_XSETREF(callback_, Py_NewRef(callback));
  setInterval(interval_seconds);
  is_started_ = true;
  threads_refused_ = 0;
  next_ = std::chrono::steady_clock::now() +
          std::chrono::nanoseconds(static_cast<int64_t>(first_seconds * 1e9));
  resume();
}

void Watcher::stop() {
  if (!is_started_) {
    return;
  }
  is_started_ = false; // first, so that a fork in another thread does not start it again
  // before the join, because another thread may start it meanwhile
  PyObject *callback = std::exchange(callback_, nullptr);
  join();
  Py_XDECREF(callback);
}

void Watcher::join() {
  if (!thread_.joinable()) {
    return;
  }
  turn_.fetch_add(1);
  sem_post(&wake_);
  // moved, because other threads may fork or stop while this one waits
  std::thread ending = std::move(thread_);
  if (ending.get_id() == std::this_thread::get_id()) {
    ending.detach(); // the callback itself stops the session
    return;
  }
  ForkPause::instance().join(std::move(ending));
}

void Watcher::pause() {
  if (is_started_) {
    join();
  }
}

void Watcher::resume() {
  if (!is_started_ || thread_.joinable() || ForkPause::instance().isForking()) {
    return;
  }
  uint64_t turn = turn_.fetch_add(1) + 1;
  thread_ = startInternalThread([this, turn] { run(turn); });
  threads_refused_ += !thread_.joinable();
}

void Watcher::abandonInChild() {
  if (!is_started_) {
    return;
  }
  new (&thread_)
      // the handle's thread does not exist here, so it must not be joined or detached
      std::thread();
}

void Watcher::run(uint64_t turn) {
  while (turn_.load() == turn) {
    timespec until = toAbsolute(next_);
    bool is_due = sem_timedwait(&wake_, &until) != 0 && errno == ETIMEDOUT;
    if (!is_due || turn_.load() != turn) {
      continue;
    }
    call();
    if (turn_.load() == turn) { // the callback may have stopped this thread and started another
      next_ = std::chrono::steady_clock::now() + interval_.load();
    }
  }
}

void Watcher::call() {
  PyGILState_STATE state = PyGILState_Ensure();
  if (callback_) {
    PyObject *callback = Py_NewRef(callback_);
    PyObject *result = PyObject_CallNoArgs(callback);
    if (!result) {
      PyErr_WriteUnraisable(callback);
    }
    Py_XDECREF(result);
    Py_DECREF(callback);
  }
  PyGILState_Release(state);
}

} // namespace deepcontext
