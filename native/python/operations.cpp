#include "python/operations.h"

#include <algorithm>
#include <new>
#include <sys/prctl.h>
#include <thread>
#include <utility>

#include "core/internal_thread.h"
#include "core/thread.h"
#include "python/fork_pause.h"
#include "python/gil_release.h"
#include "python/own_python.h"

namespace deepcontext {

namespace {

// Until a handler runs after its signal, if the signal reached another thread.
constexpr double kBetweenLooksS = 0.02;

/// Name and signals of the thread that an operation works for.
struct Caller {
  char name[16] = {};
  sigset_t signals;
};

thread_local bool t_is_inside = false;
thread_local const Caller *t_caller = nullptr;

/// The exception of the calling thread.
struct Raised {
  PyObject *type = nullptr;
  PyObject *value = nullptr;
  PyObject *traceback = nullptr;

  void fetch() { PyErr_Fetch(&type, &value, &traceback); }
  void restore() { PyErr_Restore(type, value, traceback); }
  void drop() {
    Py_CLEAR(type);
    Py_CLEAR(value);
    Py_CLEAR(traceback);
  }
};

} // namespace

struct Operations::Call {
  PyObject *function;
  uint64_t ticket;
  bool is_exclusive;
  Caller caller;
  PyObject *result = nullptr;
  Raised raised;
  std::thread thread;
  Event done;
};

Operations &Operations::instance() {
  static Operations *const operations = new Operations();
  return *operations;
}

PyObject *Operations::run(PyObject *work, bool is_exclusive) {
  if (t_is_inside) {
    return PyObject_CallNoArgs(work);
  }
  bool may_begin = ForkPause::instance().waitToBegin();
  uint64_t ticket = next_++;
  if (!may_begin) {
    return runHere(work, ticket, is_exclusive);
  }
  auto call = std::make_shared<Call>();
  call->function = Py_NewRef(work);
  call->ticket = ticket;
  call->is_exclusive = is_exclusive;
  prctl(PR_GET_NAME, call->caller.name);
  pthread_sigmask(SIG_SETMASK, nullptr, &call->caller.signals);
  call->thread = startInternalThread([call] { Operations::work(call); });
  if (!call->thread.joinable()) {
    ForkPause::instance().hasBegun();
    Py_DECREF(work);
    return runHere(work, ticket, is_exclusive);
  }
  return wait(call);
}

/// On the operation's own thread, without the GIL.
void Operations::work(const std::shared_ptr<Call> &call) {
  Event::SetAtEnd at_end(call->done);
  OwnPython python; // ends first
  ForkPause::instance().hasBegun();
  t_caller = &call->caller;
  call->result = instance().runHere(call->function, call->ticket, call->is_exclusive);
  if (!call->result) {
    call->raised.fetch();
  }
  Py_CLEAR(call->function);
}

PyObject *Operations::runHere(PyObject *work, uint64_t ticket, bool is_exclusive) {
  {
    GilRelease release;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return serving_ == ticket; });
  }
  t_is_inside = true;
  is_exclusive_ = is_exclusive;
  PyObject *result = PyObject_CallNoArgs(work);
  is_exclusive_ = false;
  t_is_inside = false;
  endTurn();
  return result;
}

void Operations::endTurn() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++serving_;
  changed_.notifyAll();
}

PyObject *Operations::wait(const std::shared_ptr<Call> &call) {
  uint64_t forks = forks_;
  unsigned long self = PyThread_get_thread_ident();
  waiting_.push_back(self);
  Raised interrupt;
  bool is_done = false, is_given_up = false;
  while (!is_done && !is_given_up) {
    {
      GilRelease release;
      is_done = call->done.waitFor(kBetweenLooksS);
    }
    if (isMainThread() && PyErr_CheckSignals() != 0) {
      is_given_up = interrupt.type != nullptr;
      interrupt.drop();
      interrupt.fetch();
    }
    if (forks != forks_) { // a handler has forked, and this is the child
      new (&call->thread) std::thread();
      interrupt.drop();
      PyErr_SetString(PyExc_RuntimeError, "forked while an operation of the profiler was running");
      return nullptr;
    }
  }
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), self));
  if (!is_done) {
    call->thread.detach();
    interrupt.restore();
    return nullptr;
  }
  {
    GilRelease release;
    call->thread.join(); // it has nothing left to do
  }
  if (interrupt.type) {
    Py_CLEAR(call->result);
    call->raised.drop();
    interrupt.restore();
    return nullptr;
  }
  if (!call->result) {
    call->raised.restore();
  }
  return std::exchange(call->result, nullptr);
}

PyObject *Operations::tryHere(PyObject *work) {
  bool is_free = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_free = serving_ == next_;
  }
  if (!is_free) {
    return Py_NewRef(Py_None);
  }
  return runHere(work, next_++, true);
}

bool Operations::isInsideExclusive() const {
  return t_is_inside && is_exclusive_;
}

bool Operations::isWaiting(unsigned long thread) const {
  return std::find(waiting_.begin(), waiting_.end(), thread) != waiting_.end();
}

void Operations::abandonInChild() {
  waiting_.clear();
  ++forks_;
  is_exclusive_ = false;
  serving_ = t_is_inside ? next_ - 1 : next_; // an operation that has forked goes on here
  new (&mutex_) std::mutex();
  new (&changed_) Condition();
}

Operations::AsCaller::AsCaller() {
  prctl(PR_GET_NAME, name_);
  pthread_sigmask(SIG_SETMASK, t_caller ? &t_caller->signals : nullptr, &signals_);
  if (t_caller) {
    prctl(PR_SET_NAME, t_caller->name);
  }
}

Operations::AsCaller::~AsCaller() {
  prctl(PR_SET_NAME, name_);
  pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
}

} // namespace deepcontext
