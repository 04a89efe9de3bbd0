#include "core/clock.h"

namespace deepcontext {

double TickClock::nsPerTick() const {
  constexpr uint64_t kShortestNs = 1'000'000;
  uint64_t now_ns = monotonicNs();
  while (now_ns - start_ns_ < kShortestNs) {
    now_ns = monotonicNs();
  }
  uint64_t now_ticks = ticks();
  return static_cast<double>(now_ns - start_ns_) / static_cast<double>(now_ticks - start_ticks_);
}

} // namespace deepcontext
