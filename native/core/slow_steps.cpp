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
    auto least = std::min_element(
        facts_.slowest.begin(), facts_.slowest.end(),
        [](const auto &left, const auto &right) { return left.duration < right.duration; });
    if (step.duration > least->duration) {
      *least = step;
    }
    ++facts_.count;
    facts_.total += step.duration;
  }
  seen_.store(steps_ << 32 | (facts_.count & UINT32_MAX), std::memory_order_relaxed);
}

} // namespace deepcontext
