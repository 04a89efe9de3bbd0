// CUPTI has one set of buffer callbacks, kinds of records and one clock for the process. Another
// tool that replaces them, as torch.profiler does, has the records until it stops; then the
// profiler takes them back.
#include <cstdlib>
#include <ctime>

#include "gpu/cupti/collector.h"

namespace deepcontext::gpu::cupti {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// Other clocks are away by years; a wall clock may be set while the program runs.
constexpr uint64_t kFar = 3600 * kSecond;

/// CUPTI's own clock on Linux.
uint64_t wallClock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

} // namespace

uint64_t CuptiCollector::deviceNow() {
  uint64_t now = 0;
  Result result =
      is_second_family_ ? library_.GetTimestamp_v2(subscriber_, &now) : library_.GetTimestamp(&now);
  return result == abi::cupti::kSuccess ? now : 0;
}

/// Set CUPTI's clock right where another tool has replaced it. Returns why GPU times would be
/// wrong, or "".
std::string CuptiCollector::checkClock(const Serial &cupti) {
  auto isFar = [this] {
    uint64_t now = deviceNow(), wall = wallClock();
    return now != 0 && (now > wall ? now - wall : wall - now) > kFar;
  };
  if (!isFar()) {
    return "";
  }
  if (cupti->ActivityRegisterTimestampCallback) {
    cupti->ActivityRegisterTimestampCallback(wallClock);
    Counters::bumpShared(clocks_set_);
  }
  return isFar() ? "CUPTI's clock is far from the wall clock: another tool (torch.profiler) has "
                   "replaced it, and it cannot be set right, so that GPU times would be wrong; "
                   "begin the session before the other tool is used"
                 : "";
}

std::string CuptiCollector::setYielded(Yield yielded) {
  std::lock_guard<std::mutex> lock(control_mutex_);
  bool is_yielded = yielded != Yield::kNothing, is_released = yielded == Yield::kAll;
  bool was_yielded = is_yielded_.exchange(is_yielded), was_released = is_released_.load();
  if (!isRunning()) {
    is_released_.store(is_released);
    return "";
  }
  std::string problem = is_yielded && !was_yielded ? yield() : "";
  if (is_released != was_released) {
    return joined(problem, is_released ? release(was_yielded) : attachAgain());
  }
  return was_yielded && !is_yielded ? regain() : problem;
}

/// What was launched so far is recorded here.
std::string CuptiCollector::yield() {
  std::string problem =
      callWithDeadline("cuptiActivityFlushAll", [](CuptiCollector &self, Result *result) {
        if (self.captures_.load() == 0) { // waiting for the device would invalidate the capture
          self.synchronizeContexts();
        }
        Serial cupti = self.library_.serial();
        *result = cupti->ActivityFlushAll(0);
        if (!self.is_second_family_) {
          cupti->ActivityDisable(abi::cupti::kKindMemcpyPeer); // Kineto has no use for it
        }
      });
  buffers_.waitUntilRead(options_.deadline_s);
  launches_before_ = launches();
  answered_before_ = attribution_.counters.answered.load();
  return problem;
}

/// Take the records again.
std::string CuptiCollector::regain() {
  std::string problem =
      callWithDeadline("cuptiActivityFlushAll", [](CuptiCollector &self, Result *result) {
        *result = self.library_.serial()->ActivityFlushAll(0);
      });
  buffers_.waitUntilRead(options_.deadline_s);
  countTaken();
  return joined(problem, registerAgain());
}

/// Leave CUPTI to a tool that has to subscribe. Nothing is seen of the program's launches until
/// that tool has stopped.
std::string CuptiCollector::release(bool was_yielded) {
  if (was_yielded) { // to a tool that has enabled the kinds, too
    countTaken();
    kinds_.clear();
  }
  is_released_.store(true);
  stalls_.refuse("stalls are not sampled any more: another tool had CUPTI");
  std::string problem = callWithDeadline(
      "cuptiPCSamplingStop", [](CuptiCollector &self, Result *) { self.stalls_.stop(); });
  problem = joined(problem, awaitOwnCalls());
  std::string ending =
      callWithDeadline("cuptiUnsubscribe", [](CuptiCollector &self, Result *) { self.disable(); });
  forgetContexts();
  return joined(problem, ending);
}

/// Take back what `release` has left.
std::string CuptiCollector::attachAgain() {
  captures_.store(0);
  attribution_.forgetAnswers(); // CUPTI numbers calls from 1 again
  std::string reason = Collector::callWithDeadline("CUPTI", "taking CUPTI back", [] {
    Result result = abi::cupti::kSuccess;
    return instance().attach(instance().library_.serial(), &result);
  });
  if (reason.empty()) {
    is_released_.store(false);
  } else {
    is_yielded_.store(true);
  }
  return reason.empty() ? "" : "GPU work after another tool had CUPTI is missing: " + reason;
}

/// Count the launches that left their records at the other tool. Where records came here all the
/// time, the other tool had none.
void CuptiCollector::countTaken() {
  uint64_t launched = launches() - launches_before_;
  uint64_t answered = attribution_.counters.answered.load() - answered_before_;
  if (launched == 0) {
    return;
  }
  if (answered > launched / 2) {
    Counters::bumpShared(blinded_runs_);
  } else {
    Counters::bumpShared(taken_launches_, launched - answered);
  }
}

/// Launches are missing and no buffer has come since this was asked last: a tool that gave no
/// notice has taken the records. Take them once for each such loss, because the tool may still run.
void CuptiCollector::takeBackRecords() {
  uint64_t buffers = attribution_.counters.buffers.load();
  uint64_t overdue = overdueLaunches();
  bool have_stopped = buffers == buffers_before_ && overdue > overdue_before_;
  buffers_before_ = buffers;
  if (have_stopped) {
    overdue_before_ = overdue;
    registerAgain();
  }
}

std::string CuptiCollector::registerAgain() {
  Counters::bumpShared(regains_);
  return callWithDeadline("taking CUPTI's records back", [](CuptiCollector &self, Result *result) {
    std::string reason = self.enable(self.library_.serial(), result);
    if (!reason.empty() && *result == abi::cupti::kSuccess) { // the clock
      self.note(reason);
    }
  });
}

} // namespace deepcontext::gpu::cupti
