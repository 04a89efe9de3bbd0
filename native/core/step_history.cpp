#include "core/step_history.h"

#include <algorithm>
#include <cmath>

namespace deepcontext {

void StepHistory::Part::add(const Part &later) {
  minimum = count ? std::min(minimum, later.minimum) : later.minimum;
  maximum = std::max(maximum, later.maximum);
  count += later.count;
  total += later.total;
}

void StepHistory::add(const Step &step) {
  static const double log_growth = std::log(growth());
  double value = std::log(static_cast<double>(std::max<uint64_t>(step.duration, 1)));
  ++bins_[std::min(static_cast<size_t>(std::ceil(value / log_growth)), kBins - 1)];
  auto least =
      std::min_element(slowest_.begin(), slowest_.end(), [](const Step &left, const Step &right) {
        return left.duration < right.duration;
      });
  if (step.duration > least->duration) {
    *least = step;
  }
  if (parts_[part_].count == part_steps_ && ++part_ == kParts) {
    for (size_t place = 0; place < kParts / 2; ++place) {
      Part joined = parts_[2 * place];
      joined.add(parts_[2 * place + 1]);
      parts_[place] = joined;
    }
    std::fill(parts_.begin() + kParts / 2, parts_.end(), Part());
    part_ = kParts / 2;
    part_steps_ *= 2;
  }
  parts_[part_].add({1, step.duration, step.duration, step.duration});
}

} // namespace deepcontext
