#pragma once
// When the program waited for the device: how long runs went on that no window saw to their end.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace deepcontext::jax {

/// The last waits that were long enough for a window to lie in them. Times in ns since 1970, as in
/// the tracer's windows. Writers hold the GIL; a reader may miss a wait that is being written.
class DeviceWaits {
public:
  static DeviceWaits &instance() {
    static DeviceWaits waits;
    return waits;
  }

  /// A wait of this length has just ended.
  void addEnded(uint64_t duration_ns) {
    if (duration_ns >= kLeastNs) {
      uint64_t now_ns = clockNs(CLOCK_REALTIME);
      add(now_ns - duration_ns, now_ns);
    }
  }

  void add(uint64_t start_ns, uint64_t end_ns) {
    Wait &wait = waits_[next_++ % kKept];
    wait.end_ns.store(0, std::memory_order_release);
    wait.start_ns.store(start_ns, std::memory_order_release);
    wait.end_ns.store(end_ns, std::memory_order_release);
  }

  /// How much of the time from `from_ns` to `to_ns` was waited, by one thread or several.
  uint64_t between(uint64_t from_ns, uint64_t to_ns) const {
    uint64_t sum_ns = 0;
    for (const Wait &wait : waits_) {
      uint64_t end_ns = std::min(wait.end_ns.load(std::memory_order_acquire), to_ns);
      uint64_t start_ns = std::max(wait.start_ns.load(std::memory_order_acquire), from_ns);
      sum_ns += end_ns > start_ns ? end_ns - start_ns : 0;
    }
    return to_ns > from_ns ? std::min(sum_ns, to_ns - from_ns) : 0;
  }

private:
  struct Wait {
    std::atomic<uint64_t> start_ns{0};
    std::atomic<uint64_t> end_ns{0};
  };
  static constexpr uint64_t kLeastNs = 5'000'000;
  // Programs that wait more often between two windows have short runs, which windows see whole.
  static constexpr size_t kKept = 256;

  std::array<Wait, kKept> waits_;
  size_t next_ = 0; // GIL held
};

} // namespace deepcontext::jax
