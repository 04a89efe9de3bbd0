#include "core/slow_steps.h"

#include <algorithm>

namespace deepcontext {

void SlowSteps::reset() {
  steps_ = median_ = 0;
  next_median_ = kFewest;
  facts_ = {};
  seen_.store(0, std::memory_order_relaxed);
}

void SlowSteps::add(const StepHistory::Step &step, const StepHistory &history) {
  ++steps_;
  // The median changes little once there are many steps.
  if (steps_ >= next_median_) {
    median_ = history.median();
    next_median_ = steps_ + std::max<uint64_t>(8, steps_ / 8);
  }
  if (median_ && static_cast<double>(step.duration) > kFactor * static_cast<double>(median_)) {
    // Steps that waited for a processor make room for others.
    auto least = std::min_element(
        facts_.slowest.begin(), facts_.slowest.end(),
        [](const Slow &left, const Slow &right) { return left.known() < right.known(); });
    if (step.duration > least->known()) {
      *least = {step, static_cast<uint32_t>(steps_), 0};
    }
    ++facts_.count;
    facts_.total += step.duration;
  }
  seen_.store(steps_ << 32 | (facts_.count & UINT32_MAX), std::memory_order_relaxed);
}

void SlowSteps::noteWork(uint32_t first, uint32_t last, uint64_t work) {
  Slow *longest = nullptr;
  for (Slow &each : facts_.slowest) {
    bool is_meant = each.place - first - 1 < last - first; // modulo a power of two
    if (is_meant && each.step.duration > (longest ? longest->step.duration : 0)) {
      longest = &each;
    }
  }
  if (longest) {
    longest->work = std::clamp<uint64_t>(work, 1, longest->step.duration);
  }
}

} // namespace deepcontext
