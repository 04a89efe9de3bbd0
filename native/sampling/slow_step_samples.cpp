#include "sampling/slow_step_samples.h"

#include <algorithm>

#include "core/metric_registry.h"
#include "core/recorder.h"
#include "core/steps.h"

namespace deepcontext {

SlowStepSamples::SlowStepSamples()
    : metric_(MetricRegistry::instance().id("slow_step_time_ns")),
      seen_(Steps::instance().slowStepsSeen()) {}

void SlowStepSamples::add(ContextTree *tree, Node *place, uint64_t ns) {
  SlowSteps::Seen seen = Steps::instance().slowStepsSeen();
  work_ns_ += ns; // the part after the end makes up for what the step before has of this one
  if (seen.steps != seen_.steps) {
    // The sums are of the first step that has ended since: the slow one may be a later one.
    bool is_judged = seen_.steps + 1 >= SlowSteps::kFewest;
    if (is_judged && seen.slow != seen_.slow && seen.slow != 0) {
      double work =
          static_cast<double>(work_ns_) / RecorderRegistry::instance().clock().nsPerTick();
      Steps::instance().noteWorkOfSlowStep(seen_.steps, seen.steps, static_cast<uint64_t>(work));
      for (size_t i = 0; i < used_; ++i) {
        tree->addTo(sums_[i].place, metric_, sums_[i].ns);
      }
    }
    used_ = 0;
    work_ns_ = 0;
    seen_ = seen;
    return; // part of this time, or many steps, lie before the step
  }
  Sum *end = sums_.data() + used_;
  Sum *found =
      std::find_if(sums_.data(), end, [&](const Sum &each) { return each.place == place; });
  if (found != end) {
    found->ns += ns;
  } else if (used_ < sums_.size()) {
    sums_[used_++] = {place, ns};
  }
}

} // namespace deepcontext
