#pragma once
// The device's clock against the host's time stamps.
#include <cstdint>

#include "core/clock.h"
#include "gpu/correlation.h"

namespace deepcontext::gpu {

/// Turns the time stamp of an API call into ns of the device's clock. One thread.
class DeviceClock {
public:
  /// Read both clocks several times and keep the reading that took least time; `device_now()`
  /// returns ns.
  template <typename DeviceNow> void pair(DeviceNow device_now, double ns_per_tick) {
    constexpr int kReadings = 4;
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < kReadings; ++i) {
      uint64_t before = ticks();
      uint64_t device = device_now();
      uint64_t width = ticks() - before;
      if (device != 0 && width < narrowest) {
        narrowest = width;
        ticks_ = before + width / 2;
        device_ns_ = device;
        is_known_ = true;
      }
    }
    ns_per_tick_ = ns_per_tick;
  }

  bool isKnown() const { return is_known_; }
  /// Whether a time may be of this clock, and not of one that another tool has set.
  bool isPlausible(uint64_t device_ns) const {
    constexpr uint64_t kFar = 1ull << 52; // 52 days
    return !is_known_ || device_ns - device_ns_ + kFar < 2 * kFar;
  }
  /// Device time of the low 48 bits of a host time stamp.
  int64_t deviceNs(uint64_t ticks) const {
    double since = static_cast<double>(CorrelationTable::ticksBetween(ticks_, ticks));
    return static_cast<int64_t>(device_ns_) + static_cast<int64_t>(since * ns_per_tick_);
  }
  /// Host time stamp of a time of the device.
  uint64_t ticksOf(uint64_t device_ns) const {
    double since = static_cast<double>(static_cast<int64_t>(device_ns - device_ns_));
    return ticks_ + static_cast<uint64_t>(static_cast<int64_t>(since / ns_per_tick_));
  }

private:
  bool is_known_ = false;
  uint64_t ticks_ = 0;
  uint64_t device_ns_ = 0;
  double ns_per_tick_ = 1;
};

} // namespace deepcontext::gpu
