#include "core/windows.h"

#include <algorithm>
#include <sys/resource.h>

#include "core/allocation_ledger.h"
#include "core/metric_registry.h"

namespace deepcontext {

namespace {

uint64_t toNs(const timeval &time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(time.tv_usec) * 1000u;
}

/// The moment as the beginning of a window.
Window beginningNow() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Window window;
  window.begin_ticks = ticks();
  window.cpu_user_ns = toNs(usage.ru_utime);
  window.cpu_system_ns = toNs(usage.ru_stime);
  return window;
}

/// Steps that the window at `place` may have before another one begins.
uint64_t lengthOf(size_t place, uint64_t equal_steps) {
  return place < Windows::kFirstEqual ? uint64_t{1} << (place - 1) : equal_steps;
}

} // namespace

size_t Window::bytes() const {
  size_t sum = sizeof(Window);
  for (const auto &[recorder, packed] : sums) {
    sum += packed.bytes() + sizeof packed;
  }
  return sum;
}

void Window::append(const Window &next) {
  end_step = next.end_step;
  end_ticks = next.end_ticks;
  cpu_user_ns += next.cpu_user_ns;
  cpu_system_ns += next.cpu_system_ns;
  durations = combine(durations, next.durations);
  for (const auto &[recorder, packed] : next.sums) {
    PackedSums &own = sums[recorder];
    own = own.empty() ? packed : together(own, packed);
  }
}

void Windows::begin(std::vector<std::string> metrics) {
  std::lock_guard<Mutex> lock(mutex_);
  metrics_ = std::move(metrics);
  wants_.clear();
  last_.clear();
  windows_.clear();
  next_ = beginningNow();
  begun_cpu_ns_ = next_.cpu_user_ns + next_.cpu_system_ns;
  equal_steps_ = 1;
  epoch_ = 0;
  costs_ = {};
  is_on_.store(true, std::memory_order_relaxed);
  Steps::instance().startCuts();
}

void Windows::end() {
  is_on_.store(false, std::memory_order_relaxed);
  Steps::instance().stopCuts();
}

const std::vector<bool> &Windows::wanted() {
  MetricRegistry &registry = MetricRegistry::instance();
  for (size_t id = wants_.size(); id < registry.size(); ++id) {
    std::string name = registry.metric(static_cast<uint16_t>(id)).name;
    wants_.push_back(std::find(metrics_.begin(), metrics_.end(), name) != metrics_.end());
  }
  return wants_;
}

std::map<uint32_t, Sums> Windows::copy() {
  std::map<uint32_t, Sums> sums;
  costs_.nodes = 0;
  for (const Recorder *recorder : RecorderRegistry::instance().active()) {
    if (!recorder->is_rewritten) {
      Sums &own = sums[recorder->index()];
      own.reserve(last_[recorder->index()].size());
      copySums(recorder->tree, wanted(), &own);
      costs_.nodes += recorder->tree.size();
    }
  }
  AllocationLedger::instance().copyAllocated(RecorderRegistry::generation(), &sums[kMemory]);
  return sums;
}

void Windows::cut() {
  std::lock_guard<Mutex> lock(mutex_);
  if (!isOn()) {
    return;
  }
  uint64_t cpu_before = clockNs(CLOCK_THREAD_CPUTIME_ID);
  Window begun = beginningNow();
  begun.begin_ticks = std::max(begun.begin_ticks, next_.begin_ticks); // this processor's clock lags
  // The number of steps at the moment of the copy, which is what the sums are of.
  StepsCut steps = Steps::instance().cut();
  std::map<uint32_t, Sums> now = copy();
  uint64_t copied = ticks();
  Window window = next_;
  window.end_step = steps.count;
  window.end_ticks = begun.begin_ticks;
  window.cpu_user_ns = begun.cpu_user_ns - next_.cpu_user_ns;
  window.cpu_system_ns = begun.cpu_system_ns - next_.cpu_system_ns;
  window.durations = steps.durations;
  for (const auto &[recorder, sums] : now) {
    window.sums[recorder] = difference(sums, last_[recorder]);
  }
  last_ = std::move(now);
  next_ = begun;
  next_.first_step = steps.count;
  if (steps.epoch != epoch_) { // something better ends steps: all before is set-up
    epoch_ = steps.epoch;
    equal_steps_ = 1;
    window.first_step = 0;
    if (!windows_.empty()) {
      Window all = std::move(windows_.front());
      for (size_t place = 1; place < windows_.size(); ++place) {
        all.append(windows_[place]);
      }
      all.append(window);
      all.first_step = 0;
      all.durations = window.durations;
      window = std::move(all);
      windows_.clear();
    }
  }
  add(std::move(window));
  uint64_t cost = clockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
  ++costs_.cuts;
  costs_.cpu_ns += cost;
  costs_.most_cpu_ns = std::max(costs_.most_cpu_ns, cost);
  costs_.most_lag_ticks =
      std::max(costs_.most_lag_ticks, copied > steps.ended_ticks ? copied - steps.ended_ticks : 0);
  double ns = static_cast<double>(steps.count < 2 ? 0 : std::max(kLeastNs, cost * kShare));
  // On a busy machine the program gets less processor time than elapses.
  uint64_t used = begun.cpu_user_ns + begun.cpu_system_ns - begun_cpu_ns_;
  ns *= std::max(1.0, static_cast<double>(costs_.cpu_ns * kCpuShare) /
                          static_cast<double>(std::max<uint64_t>(used, 1)));
  auto pause = static_cast<uint64_t>(ns / RecorderRegistry::instance().clock().nsPerTick());
  Steps::instance().wantNextCut(steps, copied + pause);
}

void Windows::add(Window window) {
  // A window that has its steps is full; the first one ends with the first step.
  size_t place = windows_.size();
  bool is_open = place > 0 && (window.steps() == 0 || windows_.back().end_step == 0);
  if (place > 1) {
    is_open |= windows_.back().steps() < lengthOf(place - 1, equal_steps_);
  }
  if (is_open) {
    windows_.back().append(window);
  } else {
    windows_.push_back(std::move(window));
  }
  while (windows_.size() > kFirstEqual + 1 &&
         (windows_.size() > kMostWindows || bytes() > kMostBytes)) {
    joinNeighbours();
  }
}

/// Join each two of the windows of equal length.
void Windows::joinNeighbours() {
  size_t kept = kFirstEqual;
  for (size_t place = kFirstEqual; place < windows_.size(); place += 2) {
    Window joined = std::move(windows_[place]);
    if (place + 1 < windows_.size()) {
      joined.append(windows_[place + 1]);
    }
    windows_[kept++] = std::move(joined);
  }
  windows_.resize(kept);
  equal_steps_ *= 2;
}

size_t Windows::bytes() const {
  size_t sum = 0;
  for (const Window &window : windows_) {
    sum += window.bytes();
  }
  return sum;
}

Windows::Reading Windows::read() const {
  std::lock_guard<Mutex> lock(mutex_);
  uint64_t begin = windows_.empty() ? next_.begin_ticks : windows_.front().begin_ticks;
  return {windows_, begin, costs_};
}

} // namespace deepcontext
