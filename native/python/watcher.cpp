#include "python/watcher.h"

#include <ctime>
#include <linux/futex.h>
#include <new>
#include <utility>

#include "core/internal_thread.h"
#include "core/system_call.h"
#include "python/own_python.h"

namespace deepcontext {

Watcher::Watcher() {
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
  systemCall(SYS_futex, &turn_, FUTEX_WAKE_PRIVATE, 1 << 20);
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
  uint32_t turn = turn_.fetch_add(1) + 1;
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

void Watcher::run(uint32_t turn) {
  while (turn_.load() == turn) {
    sleep(turn);
    if (turn_.load() != turn || std::chrono::steady_clock::now() < next_) {
      continue;
    }
    call();
    if (turn_.load() == turn) { // the callback may have stopped this thread and started another
      next_ = std::chrono::steady_clock::now() + interval_.load();
    }
  }
}

/// Until the next call is due or the turn has changed. The kernel measures the time to wait by its
/// monotonic clock.
void Watcher::sleep(uint32_t turn) {
  auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      next_ - std::chrono::steady_clock::now());
  if (left.count() > 0) {
    timespec wait{static_cast<time_t>(left.count() / 1'000'000'000),
                  static_cast<long>(left.count() % 1'000'000'000)};
    systemCall(SYS_futex, &turn_, FUTEX_WAIT_PRIVATE, turn, &wait);
  }
}

void Watcher::call() {
  OwnPython python;
  if (callback_) {
    PyObject *callback = Py_NewRef(callback_);
    python.call(callback);
    Py_DECREF(callback);
  }
}

} // namespace deepcontext
