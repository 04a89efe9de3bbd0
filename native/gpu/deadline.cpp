#include "gpu/deadline.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/internal_thread.h"

namespace deepcontext::gpu {

namespace {

thread_local bool t_is_internal = false;

struct Done {
  std::mutex mutex;
  std::condition_variable signal;
  bool is_done = false;
};

} // namespace

bool runWithDeadline(const std::function<void()> &work, double seconds) {
  auto done = std::make_shared<Done>();
  std::thread thread = startInternalThread([done, work] {
    t_is_internal = true;
    work();
    std::lock_guard<std::mutex> lock(done->mutex);
    done->is_done = true;
    done->signal.notify_all();
  });
  if (!thread.joinable()) {
    bool was_internal = std::exchange(t_is_internal, true);
    work();
    t_is_internal = was_internal;
    return true;
  }
  thread.detach();
  std::unique_lock<std::mutex> lock(done->mutex);
  // On the system clock, because ThreadSanitizer does not know the call that waits on the steady
  // clock.
  auto end = std::chrono::system_clock::now() +
             std::chrono::milliseconds(static_cast<long>(seconds * 1e3));
  return done->signal.wait_until(lock, end, [&] { return done->is_done; });
}

void markInternalThread() {
  t_is_internal = true;
}

bool isInternalThread() {
  return t_is_internal;
}

} // namespace deepcontext::gpu
