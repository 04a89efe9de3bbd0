#pragma once
// How much of a device's communication ran while nothing was computed there.
#include <array>
#include <cstdint>

#include "core/metric_row.h"

namespace deepcontext::gpu {

/// What a device did in an interval. Copies and memsets do not hide communication.
enum class Work : uint8_t { kCompute, kCommunication, kCopy };

/// A device ran what the call `correlation` launched, from `start_ns` to `end_ns`.
struct BusyInterval {
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t correlation;
  Work work = Work::kCompute;
  uint32_t collective = 0;      // number of the collective's call plus one; 0: not known
  MetricRow *exposed = nullptr; // of communication, where its exposed time is added
};

/// Takes the intervals of one device in the order of their starts. State is the intervals that are
/// open at one moment, and one sum, of the time in which communication was alone: the exposed time
/// of an interval is the difference of that sum between its start and its end. Communications that
/// are alone together share the time. Draining thread only.
class Exposure {
public:
  void add(const BusyInterval &interval);
  /// No more intervals will come.
  void finish();
  /// Intervals that came while `kMostOpen` were open, so that one of these was closed too early:
  /// their exposed time is approximate.
  uint64_t crowded() const { return crowded_; }

  static constexpr uint32_t kMostOpen = 64; // streams that are busy at once

private:
  struct Open {
    BusyInterval interval;
    uint64_t alone_ns; // the sum at its start
  };

  uint64_t earliestEnd() const;
  void advance(uint64_t to_ns);
  void passTo(uint64_t to_ns);
  void close(uint32_t position);

  std::array<Open, kMostOpen> open_;
  uint32_t open_count_ = 0;
  uint32_t computing_ = 0;     // open intervals of this kind
  uint32_t communicating_ = 0; // the same
  uint64_t now_ns_ = 0;
  uint64_t alone_ns_ = 0;
  uint64_t crowded_ = 0;
};

} // namespace deepcontext::gpu
