#include "core/step_history.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deepcontext {

void StepHistory::Part::add(const Part &later) {
  minimum = count ? std::min(minimum, later.minimum) : later.minimum;
  maximum = std::max(maximum, later.maximum);
  count += later.count;
  total += later.total;
}

/// A random number below `below` (xorshift), the same ones in each session.
uint64_t StepHistory::drawn(uint64_t below) {
  draw_ ^= draw_ << 13;
  draw_ ^= draw_ >> 7;
  draw_ ^= draw_ << 17;
  return draw_ % below;
}

bool StepHistory::add(const Step &step, bool is_marked) {
  static const double log_growth = std::log(growth());
  double value = std::log(static_cast<double>(std::max<uint64_t>(step.duration, 1)));
  ++bins_[std::min(static_cast<size_t>(std::ceil(value / log_growth)), kBins - 1)];
  auto least =
      std::min_element(slowest_.begin(), slowest_.end(), [](const Step &left, const Step &right) {
        return left.duration < right.duration;
      });
  bool is_chosen = is_marked;
  if (step.duration > least->duration) {
    *least = step;
    is_chosen = true;
  }
  // Reservoir sampling (Vitter, 1985, algorithm R).
  uint64_t place = count_ < kRandom ? count_ : drawn(count_ + 1);
  ++count_;
  if (place < kRandom) {
    random_[place] = step;
    is_chosen = true;
  }
  if (is_marked) {
    marked_[marked_count_++ % kMarked] = step;
  }
  if (parts_[part_].count == part_steps_ && ++part_ == kParts) {
    for (size_t pair = 0; pair < kParts / 2; ++pair) {
      Part joined = parts_[2 * pair];
      joined.add(parts_[2 * pair + 1]);
      parts_[pair] = joined;
    }
    std::fill(parts_.begin() + kParts / 2, parts_.end(), Part());
    part_ = kParts / 2;
    part_steps_ *= 2;
  }
  parts_[part_].add({1, step.duration, step.duration, step.duration});
  return is_chosen;
}

uint64_t StepHistory::median() const {
  uint64_t count = std::accumulate(bins_.begin(), bins_.end(), uint64_t{0});
  uint64_t seen = 0;
  for (size_t place = 0; place < kBins; ++place) {
    seen += bins_[place];
    if (count > 0 && 2 * seen >= count) {
      return static_cast<uint64_t>(std::pow(growth(), static_cast<double>(place)) * (1 - kError));
    }
  }
  return 0;
}

} // namespace deepcontext
