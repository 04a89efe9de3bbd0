#include "session/window_cutter.h"

#include <ctime>
#include <linux/futex.h>
#include <new>
#include <utility>

#include "core/exemplars.h"
#include "core/internal_thread.h"
#include "core/system_call.h"
#include "core/windows.h"

namespace deepcontext {

WindowCutter::WindowCutter() {
  ForkPause::instance().add(this);
}

WindowCutter &WindowCutter::instance() {
  static WindowCutter *const cutter = new WindowCutter();
  return *cutter;
}

void WindowCutter::start() {
  stop();
  is_started_ = true;
  is_refused_ = false;
  resume();
}

void WindowCutter::stop() {
  if (is_started_) {
    is_started_ = false; // first, so that a fork in another thread does not start it again
    join();
  }
}

void WindowCutter::join() {
  if (thread_.joinable()) {
    turn_.fetch_add(1);
    Steps::instance().wakeCutter();
    ForkPause::instance().join(std::move(thread_));
  }
}

void WindowCutter::pause() {
  if (is_started_) {
    join();
  }
}

void WindowCutter::resume() {
  if (!is_started_ || thread_.joinable() || ForkPause::instance().isForking()) {
    return;
  }
  uint32_t turn = turn_.fetch_add(1) + 1;
  thread_ = startInternalThread([this, turn] { run(turn); });
  is_refused_ = !thread_.joinable();
}

void WindowCutter::abandonInChild() {
  if (is_started_) {
    is_started_ = false;
    new (&thread_) std::thread(); // the handle's thread does not exist here
  }
}

void WindowCutter::run(uint32_t turn) {
  Steps &steps = Steps::instance();
  while (true) {
    uint32_t seen = steps.wakings().load();
    if (turn_.load() != turn) {
      return;
    }
    if (steps.takeDueCut()) {
      Windows::instance().cut();
    } else if (steps.takeDueCopy()) {
      Exemplars::instance().update();
    } else {
      systemCall(SYS_futex, &steps.wakings(), FUTEX_WAIT_PRIVATE, seen,
                 static_cast<timespec *>(nullptr));
    }
  }
}

} // namespace deepcontext
