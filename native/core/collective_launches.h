#pragma once
// Joins what a device ran for a collective with the call of the collective.
#include <atomic>
#include <cstdint>

#include "core/lazy_array.h"

namespace deepcontext {

/// What a device ran for a collective.
struct DeviceWork {
  uint64_t start_ns; // on the device's time line
  uint64_t end_ns;
  uint64_t exposed_ns; // while nothing was computed on the device
};

/// Calls of collectives by the vendor's number of a launch that they made. Launching threads write,
/// the draining thread reads; no lock, and no allocation but for pages that are used. A launch
/// whose place a later one has taken is forgotten, which leaves a collective without a duration.
class CollectiveLaunches {
public:
  using Sink = void (*)(uint32_t order, const DeviceWork &work);

  static CollectiveLaunches &instance() {
    static CollectiveLaunches *const launches = new CollectiveLaunches();
    return *launches;
  }

  /// The call with this number among all calls of the process has launched something.
  void note(uint32_t correlation, uint32_t order) {
    is_used_.store(true, std::memory_order_relaxed);
    slots_[correlation % kSlots].store(static_cast<uint64_t>(correlation) << 32 | (order + 1),
                                       std::memory_order_release);
  }
  /// The number of the call plus one; 0 for a launch that no call made.
  uint32_t find(uint32_t correlation) const {
    uint64_t slot = slots_[correlation % kSlots].load(std::memory_order_acquire);
    return slot >> 32 == correlation ? static_cast<uint32_t>(slot) : 0;
  }
  /// Forget all calls.
  void clear() {
    for (uint32_t i = 0; is_used_.load(std::memory_order_relaxed) && i < kSlots; ++i) {
      slots_[i].store(0, std::memory_order_relaxed);
    }
    is_used_.store(false, std::memory_order_relaxed);
  }

  /// Who wants to know what the device ran. Set once.
  void setSink(Sink sink) { sink_.store(sink, std::memory_order_release); }
  void deliver(uint32_t order, const DeviceWork &work) const {
    if (Sink sink = sink_.load(std::memory_order_acquire)) {
      sink(order, work);
    }
  }

private:
  static constexpr uint32_t kSlots = 1u << 16;

  std::atomic<Sink> sink_{nullptr};
  std::atomic<bool> is_used_{false};
  LazyArray<std::atomic<uint64_t>> slots_{kSlots};
};

} // namespace deepcontext
