#include "python/watcher.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/own_thread.h"
#include "python/hold_up.h"

namespace deepcontext {

namespace {

constexpr std::chrono::seconds kLongestLastWrite{5};

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

bool isDefault(int signal_number) {
  struct sigaction action;
  return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

void setHandler(int signal_number, void (*handler)(int)) {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal_number, &action, nullptr);
}

bool isOurs(int signal_number, void (*handler)(int)) {
  struct sigaction action;
  return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == handler;
}

void dieOf(int signal_number) {
  setHandler(signal_number, SIG_DFL);
  // Our own threads take no signals, and the thread that got this one is still in its handler: one
  // thread has to let it through.
  sigset_t deadly;
  sigemptyset(&deadly);
  sigaddset(&deadly, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &deadly, nullptr);
  kill(getpid(), signal_number);
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

void Watcher::holdUntilDead(int signal_number) {
  std::chrono::steady_clock::time_point never;
  // Longer than the last write may take: the process is dead before that.
  auto end = std::chrono::steady_clock::now() + 2 * kLongestLastWrite;
  if (!instance().latest_death_.compare_exchange_strong(never, end)) {
    end = never; // it has gone on for a moment since
  }
  if (holdUp(instance().writer_.load(), signal_number, end)) {
    dieOf(signal_number);
  }
}

int Watcher::holdWithoutGil(void *signal_number) {
  Py_BEGIN_ALLOW_THREADS holdUntilDead(static_cast<int>(reinterpret_cast<intptr_t>(signal_number)));
  Py_END_ALLOW_THREADS return 0;
}

void Watcher::onSignal(int signal_number) {
  int saved = errno;
  if (getpid() != instance().pid_) {
    dieOf(signal_number); // a child not yet out of fork(): it has this handler, but no thread
    return;
  }
  if (!instance().is_dying_.load()) { // or this thread has gone on for a moment
    instance().pending_signal_.store(signal_number);
    sem_post(&instance().wake_);
  }
  // The program must not go on: what it is in would return to it, interrupted by a signal that
  // should have killed it.
  if (PyGILState_Check()) {
    auto *number = reinterpret_cast<void *>(static_cast<intptr_t>(signal_number));
    Py_AddPendingCall(holdWithoutGil, number); // the watcher needs the GIL
  } else {
    holdUntilDead(signal_number);
  }
  errno = saved;
}

void Watcher::start(PyObject *callback, double first_seconds, double interval_seconds,
                    const std::vector<int> &signals) {
  stop();
  Py_XSETREF(callback_, Py_NewRef(callback));
  setInterval(interval_seconds);
  pid_ = getpid();
  is_started_ = true;
  threads_refused_ = 0;
  is_dying_.store(false); // a child forked while its parent died has these still
  latest_death_.store({});
  next_ = std::chrono::steady_clock::now() +
          std::chrono::nanoseconds(static_cast<int64_t>(first_seconds * 1e9));
  for (int signal_number : signals) {
    if (isDefault(signal_number)) {
      setHandler(signal_number, onSignal);
      taken_.push_back(signal_number);
    }
  }
  resume();
}

void Watcher::restoreSignals() {
  for (int signal_number : taken_) {
    if (isOurs(signal_number, onSignal)) { // the program may have installed its own since
      setHandler(signal_number, SIG_DFL);
    }
  }
  taken_.clear();
}

void Watcher::stop() {
  if (!is_started_) {
    return;
  }
  restoreSignals();
  is_started_ = false; // first: a fork in another thread must not start it again meanwhile
  join();
  Py_CLEAR(callback_);
  if (int signal_number = pending_signal_.exchange(0)) {
    dieOf(signal_number); // it came while no thread was there to see it
  }
}

void Watcher::join() {
  if (!thread_.joinable()) {
    return;
  }
  turn_.fetch_add(1);
  sem_post(&wake_);
  std::thread ending = std::move(thread_); // other threads may fork or stop while this one waits
  if (ending.get_id() == std::this_thread::get_id()) {
    ending.detach(); // the callback itself stops the session
    return;
  }
  Py_BEGIN_ALLOW_THREADS // the thread may be waiting for the GIL
      ending.join();
  Py_END_ALLOW_THREADS
}

void Watcher::pause() {
  if (is_started_) {
    join();
  }
}

void Watcher::resume() {
  if (!is_started_ || thread_.joinable()) {
    return;
  }
  uint64_t turn = turn_.fetch_add(1) + 1;
  thread_ = startOwnThread([this, turn] { run(turn); });
  threads_refused_ += !thread_.joinable();
}

void Watcher::abandonInChild() {
  if (!is_started_) {
    return;
  }
  for (int signal_number : taken_) {
    if (isOurs(signal_number, onSignal)) {
      setHandler(signal_number, SIG_DFL);
    }
  }
  new (&thread_)
      std::thread(); // what the handle names does not exist here; not even a detach would do
}

bool Watcher::isOver(uint64_t turn) {
  if (int signal_number = pending_signal_.exchange(0)) {
    die(signal_number);
    return true;
  }
  return turn_.load() != turn;
}

void Watcher::run(uint64_t turn) {
  writer_.store(static_cast<pid_t>(syscall(SYS_gettid)));
  while (!isOver(turn)) {
    timespec until = toAbsolute(next_);
    bool is_due = sem_timedwait(&wake_, &until) != 0 && errno == ETIMEDOUT;
    if (!is_due || isOver(turn)) {
      continue;
    }
    call("snapshot");
    if (turn_.load() == turn) { // the callback may have stopped us and started another
      next_ = std::chrono::steady_clock::now() + interval_.load();
    }
  }
}

void Watcher::call(const char *reason) {
  PyGILState_STATE state = PyGILState_Ensure();
  if (callback_) {
    PyObject *callback = Py_NewRef(callback_);
    PyObject *result = PyObject_CallFunction(callback, "s", reason);
    if (!result) {
      PyErr_WriteUnraisable(callback);
    }
    Py_XDECREF(result);
    Py_DECREF(callback);
  }
  PyGILState_Release(state);
}

void Watcher::die(int signal_number) {
  is_dying_.store(true);
  // Whoever holds the GIL may not give it back; the signal still has to kill in reasonable time.
  std::thread deadline = startOwnThread([signal_number] {
    std::this_thread::sleep_for(kLongestLastWrite);
    dieOf(signal_number);
  });
  if (deadline.joinable()) { // else the thread that is held up ends the process, somewhat later
    deadline.detach();
  }
  call(signal_number == SIGTERM ? "SIGTERM" : signal_number == SIGHUP ? "SIGHUP" : "signal");
  dieOf(signal_number);
}

} // namespace deepcontext
