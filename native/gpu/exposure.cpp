#include "gpu/exposure.h"

#include <algorithm>

#include "core/collective_launches.h"

namespace deepcontext::gpu {

void Exposure::add(const BusyInterval &interval) {
  if (interval.work == Work::kCopy) {
    return;
  }
  advance(interval.start_ns);
  if (open_count_ == kMostOpen) {
    ++crowded_;
    advance(earliestEnd());
  }
  open_[open_count_++] = {interval, alone_ns_};
  (interval.work == Work::kCompute ? computing_ : communicating_)++;
}

void Exposure::finish() {
  while (open_count_ > 0) {
    advance(earliestEnd());
  }
  now_ns_ = 0;
}

uint64_t Exposure::earliestEnd() const {
  const Open *end = open_.data() + open_count_;
  return std::min_element(open_.data(), end,
                          [](const Open &left, const Open &right) {
                            return left.interval.end_ns < right.interval.end_ns;
                          })
      ->interval.end_ns;
}

/// Close the intervals that end before a time, or then.
void Exposure::advance(uint64_t to_ns) {
  while (open_count_ > 0) {
    uint64_t end = earliestEnd();
    passTo(std::min(end, to_ns));
    if (end > to_ns) {
      break;
    }
    for (uint32_t i = open_count_; i > 0; --i) {
      if (open_[i - 1].interval.end_ns <= end) {
        close(i - 1);
      }
    }
  }
  now_ns_ = std::max(now_ns_, to_ns);
}

void Exposure::passTo(uint64_t to_ns) {
  if (to_ns > now_ns_) {
    alone_ns_ += computing_ == 0 && communicating_ > 0 ? (to_ns - now_ns_) / communicating_ : 0;
    now_ns_ = to_ns;
  }
}

void Exposure::close(uint32_t position) {
  const Open closed = open_[position];
  open_[position] = open_[--open_count_];
  if (closed.interval.work == Work::kCompute) {
    --computing_;
    return;
  }
  --communicating_;
  const BusyInterval &interval = closed.interval;
  uint64_t exposed_ns = std::min(alone_ns_ - closed.alone_ns, interval.end_ns - interval.start_ns);
  interval.exposed->add(exposed_ns);
  if (interval.collective != 0) {
    CollectiveLaunches::instance().deliver(interval.collective - 1,
                                           {interval.start_ns, interval.end_ns, exposed_ns});
  }
}

} // namespace deepcontext::gpu
