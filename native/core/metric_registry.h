#pragma once
// Names of the metrics that nodes may carry, as small ids.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/mutex.h"

namespace deepcontext {

/// Process-wide list of metrics. Any thread; callers keep the ids they ask for.
class MetricRegistry {
public:
  static MetricRegistry &instance() {
    static MetricRegistry *const registry = new MetricRegistry();
    return *registry;
  }

  /// The id of a metric, made if absent. `is_ticks`: values are differences of time stamps,
  /// converted to nanoseconds when the tree is read.
  uint16_t id(std::string_view name, bool is_ticks = false) { return add(name, is_ticks, false); }
  /// As `id`, of a metric that is a reading, not a sum over events: its rows have no spread.
  uint16_t gauge(std::string_view name) { return add(name, false, true); }
  struct Metric {
    std::string name;
    bool is_ticks;
    bool is_gauge;
  };
  size_t size() const {
    std::lock_guard<Mutex> lock(mutex_);
    return metrics_.size();
  }
  Metric metric(uint16_t id) const {
    std::lock_guard<Mutex> lock(mutex_);
    return metrics_[id];
  }
  Mutex &forkLock() { return mutex_; }

private:
  uint16_t add(std::string_view name, bool is_ticks, bool is_gauge) {
    std::lock_guard<Mutex> lock(mutex_);
    for (size_t i = 0; i < metrics_.size(); ++i) {
      if (metrics_[i].name == name) {
        return static_cast<uint16_t>(i);
      }
    }
    metrics_.push_back({std::string(name), is_ticks, is_gauge});
    return static_cast<uint16_t>(metrics_.size() - 1);
  }

  mutable Mutex mutex_;
  std::vector<Metric> metrics_;
};

} // namespace deepcontext
