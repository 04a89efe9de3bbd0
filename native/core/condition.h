#pragma once
// A condition variable whose deadlines do not follow the wall clock.
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <utility>

#include "core/clock.h"

namespace deepcontext {

/// Waits with a deadline of CLOCK_MONOTONIC. std::condition_variable falls back to the wall clock
/// where glibc is older than 2.30, and then a clock that is set back makes a wait longer.
class Condition {
public:
  Condition() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ~Condition() { pthread_cond_destroy(&condition_); }
  Condition(const Condition &) = delete;
  Condition &operator=(const Condition &) = delete;

  void notifyOne() { pthread_cond_signal(&condition_); }
  void notifyAll() { pthread_cond_broadcast(&condition_); }

  /// Wait until `is_true()`, which is called with the lock held.
  template <typename IsTrue> void wait(std::unique_lock<std::mutex> &lock, IsTrue is_true) {
    while (!is_true()) {
      pthread_cond_wait(&condition_, lock.mutex()->native_handle());
    }
  }

  /// The same with a deadline; returns the last answer of `is_true()`.
  template <typename IsTrue>
  bool waitFor(std::unique_lock<std::mutex> &lock, double seconds, IsTrue is_true) {
    uint64_t end_ns = monotonicNs() + static_cast<uint64_t>(seconds * 1e9);
    timespec end{static_cast<time_t>(end_ns / 1'000'000'000),
                 static_cast<long>(end_ns % 1'000'000'000)};
    while (!is_true()) {
      if (pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &end) != 0) {
        return is_true();
      }
    }
    return true;
  }

private:
  pthread_cond_t condition_;
};

/// Something that happens once, and that other threads wait for.
class Event {
public:
  /// Sets the event when it goes out of scope, however the scope is left.
  class SetAtEnd {
  public:
    explicit SetAtEnd(Event &event) : event_(event) {}
    ~SetAtEnd() { event_.set(); }
    SetAtEnd(const SetAtEnd &) = delete;
    SetAtEnd &operator=(const SetAtEnd &) = delete;

  private:
    Event &event_;
  };

  void set() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_set_ = true;
    condition_.notifyAll();
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_set_ = false;
  }
  /// False when it has not happened after `seconds`.
  bool waitFor(double seconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    return condition_.waitFor(lock, seconds, [this] { return is_set_; });
  }

private:
  std::mutex mutex_;
  Condition condition_;
  bool is_set_ = false;
};

} // namespace deepcontext
