#pragma once
// Busy and idle time of devices and streams, from records in no particular order.
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "gpu/exposure.h"

namespace deepcontext::gpu {

/// Nothing ran on the device between the two times; the call `correlation` launched the work that
/// ended the gap.
struct IdleGap {
  uint32_t device;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t correlation;
};

struct DeviceTotals {
  uint64_t first_ns = 0; // begin of the first record
  uint64_t last_ns = 0;  // end of the last
  uint64_t busy_ns = 0;  // something ran
  uint64_t idle_ns = 0;  // nothing ran; busy + idle = last - first
  uint64_t late_ns = 0;  // busy time whose records came too late; an upper bound of the error
  uint64_t crowded = 0;  // intervals with approximate exposed times, see Exposure
  std::map<uint32_t, uint64_t> stream_busy_ns; // work on one stream never overlaps itself
};

/// Keeps a bounded window of intervals per device, sorts it as it fills, and reports gaps and
/// exposed communication in order of time. Draining thread only.
class IdleTracker {
public:
  /// Records may come this many records late and are still sorted into place.
  static constexpr size_t kWindow = 32768;
  using OnGap = std::function<void(const IdleGap &)>;

  explicit IdleTracker(OnGap on_gap) : on_gap_(std::move(on_gap)) {}

  void add(uint32_t device, uint32_t stream, const BusyInterval &interval) {
    Device &state = device == last_device_ && last_ ? *last_ : stateOf(device);
    state.pending.push_back(interval);
    state.addBusy(stream, interval.end_ns - interval.start_ns);
  }
  /// Report the intervals before the window; all intervals when no more records will come.
  void settle(bool is_final);
  std::map<uint32_t, DeviceTotals> totals() const;
  void clear();

private:
  struct Device {
    std::vector<BusyInterval> pending; // the first `sorted` are in order
    size_t sorted = 0;
    bool has_begun = false;
    uint64_t busy_until_ns = 0;
    uint64_t reported_ns = 0; // latest start among the reported intervals
    DeviceTotals totals;
    Exposure exposure;
    uint32_t last_stream = UINT32_MAX;
    uint64_t *last_busy = nullptr;

    void addBusy(uint32_t stream, uint64_t ns) {
      if (stream != last_stream || !last_busy) {
        last_stream = stream;
        last_busy = &totals.stream_busy_ns[stream];
      }
      *last_busy += ns;
    }
  };
  Device &stateOf(uint32_t device);
  void sort(Device &device);
  void report(uint32_t id, Device &device, const BusyInterval &interval);

  OnGap on_gap_;
  std::map<uint32_t, Device> devices_;
  uint32_t last_device_ = UINT32_MAX;
  Device *last_ = nullptr;
};

} // namespace deepcontext::gpu
