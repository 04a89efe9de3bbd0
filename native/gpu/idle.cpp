#include "gpu/idle.h"

#include <algorithm>

namespace deepcontext::gpu {

namespace {

bool startsBefore(const BusyInterval &left, const BusyInterval &right) {
  return left.start_ns < right.start_ns;
}

} // namespace

IdleTracker::Device &IdleTracker::stateOf(uint32_t device) {
  last_ = &devices_[device]; // a map does not move its elements
  last_device_ = device;
  return *last_;
}

void IdleTracker::sort(Device &device) {
  auto begin = device.pending.begin();
  auto middle = begin + static_cast<std::ptrdiff_t>(device.sorted);
  auto end = device.pending.end();
  if (!std::is_sorted(middle, end, startsBefore)) {
    std::sort(middle, end, startsBefore);
  }
  if (middle != begin && middle != end && startsBefore(*middle, *(middle - 1))) {
    std::inplace_merge(begin, middle, end, startsBefore);
  }
  device.sorted = device.pending.size();
}

void IdleTracker::report(uint32_t id, Device &device, const BusyInterval &interval) {
  DeviceTotals &totals = device.totals;
  if (!device.has_begun) {
    device.has_begun = true;
    device.busy_until_ns = interval.start_ns;
    totals.first_ns = interval.start_ns;
  }
  if (interval.start_ns > device.busy_until_ns) {
    totals.idle_ns += interval.start_ns - device.busy_until_ns;
    on_gap_({id, device.busy_until_ns, interval.start_ns, interval.correlation});
    device.busy_until_ns = interval.start_ns;
  } else if (interval.start_ns < device.reported_ns) {
    // Too late: its part inside a reported gap stays counted as idle.
    totals.late_ns += std::min(interval.end_ns, device.busy_until_ns) - interval.start_ns;
  }
  device.reported_ns = std::max(device.reported_ns, interval.start_ns);
  if (interval.end_ns > device.busy_until_ns) {
    totals.busy_ns += interval.end_ns - device.busy_until_ns;
    device.busy_until_ns = interval.end_ns;
    totals.last_ns = interval.end_ns;
  }
}

void IdleTracker::settle(bool is_final) {
  for (auto &[id, device] : devices_) {
    if (!is_final && device.pending.size() < 2 * kWindow) {
      continue;
    }
    sort(device);
    size_t count = is_final ? device.pending.size() : device.pending.size() - kWindow;
    for (size_t i = 0; i < count; ++i) {
      report(id, device, device.pending[i]);
      device.exposure.add(device.pending[i]);
    }
    if (is_final) {
      device.exposure.finish();
    }
    device.pending.erase(device.pending.begin(),
                         device.pending.begin() + static_cast<std::ptrdiff_t>(count));
    device.sorted = device.pending.size();
  }
}

std::map<uint32_t, DeviceTotals> IdleTracker::totals() const {
  std::map<uint32_t, DeviceTotals> all;
  for (const auto &[id, device] : devices_) {
    all[id] = device.totals;
    all[id].crowded = device.exposure.crowded();
  }
  return all;
}

void IdleTracker::clear() {
  devices_.clear();
  last_ = nullptr;
  last_device_ = UINT32_MAX;
}

} // namespace deepcontext::gpu
