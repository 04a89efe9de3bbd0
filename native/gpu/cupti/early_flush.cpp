#include "gpu/cupti/early_flush.h"

#include <thread>

#include "core/guard.h"
#include "core/internal_thread.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu::cupti {

void EarlyFlush::begin(Flush flush) {
  std::lock_guard<std::mutex> lock(mutex_);
  flush_ = flush;
  last_.store(0);
}

void EarlyFlush::request(uint32_t correlation) {
  std::lock_guard<std::mutex> lock(mutex_);
  last_.store(correlation, std::memory_order_relaxed);
  if (is_flushing_ || !flush_) {
    return;
  }
  std::thread thread = startInternalThread([this] { run(); });
  is_flushing_ = thread.joinable();
  if (is_flushing_) {
    thread.detach();
  }
}

void EarlyFlush::run() {
  markInternalThread();
  Flush flush;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    flush = flush_;
  }
  if (flush) {
    guarded(flush); // whatever happens, `end` must not wait in vain
  }
  std::lock_guard<std::mutex> lock(mutex_);
  is_flushing_ = false;
  done_.notifyAll();
}

bool EarlyFlush::end(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  flush_ = nullptr;
  return done_.waitFor(lock, seconds, [this] { return !is_flushing_; });
}

} // namespace deepcontext::gpu::cupti
