// Fetching records, and the end of a session. Each call of CUPTI has a deadline.
#include <chrono>
#include <thread>

#include "gpu/cupti/collector.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu::cupti {

std::string CuptiCollector::flush() {
  std::lock_guard<std::mutex> lock(control_mutex_);
  if (!isRunning()) {
    return "";
  }
  if (is_yielded_.load()) { // the buffers are the other tool's
    publish(false);
    return "";
  }
  std::string problem =
      callWithDeadline("cuptiActivityFlushAll", [](CuptiCollector &self, Result *result) {
        *result = self.library_.serial()->ActivityFlushAll(0);
        self.countDropped(nullptr, 0); // also when no buffer was completed since
      });
  if (!buffers_.waitUntilRead(options_.deadline_s) && problem.empty()) {
    problem = "activity buffers were not read in time";
  }
  problem = joined(problem, fetchOld());
  noteStalls(false);
  publish(false);
  return problem;
}

/// Fetch complete records, in sessions without snapshots also those of old launches.
void CuptiCollector::fetchEarly() {
  if (is_yielded_.load()) { // the buffers are the other tool's
    return;
  }
  {
    Serial cupti = library_.trySerial();
    if (!cupti) { // the next quarter of the ring asks again
      return;
    }
    Counters::bumpShared(attribution_.counters.early_flushes);
    cupti->ActivityFlushAll(0);
  }
  // Never waits, because the end of the session waits for this thread.
  std::unique_lock<std::mutex> control(control_mutex_, std::try_to_lock);
  if (control.owns_lock() && isRunning() && !is_yielded_.load()) {
    fetchOld();
  }
}

/// Look for old launches without a record once in `backlog_s`, and fetch their records.
std::string CuptiCollector::fetchOld() {
  if (!noteDueLaunches() || overdueLaunches() <= taken_launches_.load()) {
    return "";
  }
  if (stalls_.isArmed()) { // a forced flush would lose kernels (seen by others with driver 590)
    return "";
  }
  std::string problem = forceFlush();
  takeBackRecords();
  return problem;
}

/// Fetch the records of old launches from buffers that hold incomplete records, too. The incomplete
/// ones come without times.
std::string CuptiCollector::forceFlush() {
  Counters::bumpShared(attribution_.counters.forced_flushes);
  std::string problem =
      callWithDeadline("cuptiActivityFlushAll", [](CuptiCollector &self, Result *result) {
        *result = self.library_.serial()->ActivityFlushAll(abi::cupti::kFlushForced);
      });
  buffers_.waitUntilRead(options_.deadline_s);
  return problem;
}

/// Wait for calls of CUPTI that the profiler's threads are in, before the subscription ends. After
/// one that does not return, CUPTI is not called again.
std::string CuptiCollector::awaitOwnCalls() {
  bool is_done = early_flush_.end(options_.deadline_s);
  auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.deadline_s);
  while (asking_.load() > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if ((is_done && asking_.load() == 0) || is_stuck_.load()) {
    return "";
  }
  is_stuck_.store(true);
  return "a call of CUPTI did not return within " +
         std::to_string(static_cast<int>(options_.deadline_s)) + " s; CUPTI is not called again";
}

std::string CuptiCollector::stop() {
  std::lock_guard<std::mutex> control(control_mutex_);
  if (!isRunning()) {
    return "";
  }
  std::string problem = callWithDeadline(
      "cuptiPCSamplingStop", [](CuptiCollector &self, Result *) { self.stalls_.stop(); });
  std::string waiting = callWithDeadline(
      "waiting for the GPU", [](CuptiCollector &self, Result *) { self.synchronizeContexts(); });
  problem = joined(problem, waiting);
  std::string flushing =
      callWithDeadline("cuptiActivityFlushAll", [](CuptiCollector &self, Result *result) {
        if (self.is_yielded_.load()) { // the buffers are the other tool's
          self.countTaken();
          return;
        }
        // Complete buffers first, because a forced flush also delivers incomplete records.
        Serial cupti = self.library_.serial();
        cupti->ActivityFlushAll(0);
        *result = cupti->ActivityFlushAll(abi::cupti::kFlushForced);
        self.countDropped(nullptr, 0);
      });
  problem = joined(problem, flushing);
  buffers_.waitUntilRead(options_.deadline_s); // before unsubscribing, which reading needs
  is_running_.store(false);
  problem = joined(problem, awaitOwnCalls());
  std::string ending =
      callWithDeadline("cuptiUnsubscribe", [](CuptiCollector &self, Result *) { self.disable(); });
  problem = joined(problem, ending);
  buffers_.stop();
  noteStalls(true);
  publish(true);
  forgetContexts();
  return problem;
}

void CuptiCollector::forgetContexts() {
  std::lock_guard<std::mutex> lock(contexts_mutex_);
  contexts_.clear();
  last_context_.store(nullptr);
  contexts_age_.fetch_add(1);
}

void CuptiCollector::disable() {
  if (!subscriber_) { // released, or never attached
    return;
  }
  if (is_yielded_.load() && !is_released_.load()) {
    kinds_.clear(); // the other tool has enabled them, too
  }
  Serial cupti = library_.serial();
  for (uint32_t kind : kinds_) {
    if (is_second_family_) {
      cupti->ActivityDisable_v2(subscriber_, kind, nullptr);
    } else {
      cupti->ActivityDisable(kind);
    }
  }
  device_pool_.restore(cupti);
  cupti->Unsubscribe(subscriber_);
  subscriber_ = nullptr;
}

/// Wait until launched work has ended, so that its records are complete.
void CuptiCollector::synchronizeContexts() {
  if (!library_.CtxPushCurrent || !library_.CtxPopCurrent || !library_.CtxSynchronize) {
    return;
  }
  if (captures_.load() > 0) { // waiting for the device would invalidate the capture
    note("a CUDA graph was being captured when the session ended, so the GPU was not "
         "waited for: work it still had then is missing");
    return;
  }
  std::set<void *> contexts;
  {
    std::lock_guard<std::mutex> lock(contexts_mutex_);
    contexts = contexts_;
  }
  for (void *context : contexts) {
    if (library_.CtxPushCurrent(context) == 0) {
      library_.CtxSynchronize();
      void *popped = nullptr;
      library_.CtxPopCurrent(&popped);
    }
  }
}

} // namespace deepcontext::gpu::cupti
