#pragma once
// The tree of the running or last session, as the profile file keeps it.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/exemplars.h"
#include "core/lazy_array.h"
#include "core/merge.h"
#include "core/windows.h"

namespace deepcontext {

/// The threads' trees, merged at one moment. No GIL needed.
class TreeReading {
public:
  /// `thread_names`: what Python calls its threads, by Thread.ident.
  explicit TreeReading(const std::vector<std::pair<uint64_t, std::string>> &thread_names);

  const OrderedTree &tree() const { return tree_; }
  /// Metrics that have rows.
  std::vector<std::string> metricNames() const;
  /// Whether minimum, maximum and m2 of a metric mean something.
  bool hasSpread(const std::string &name) const;
  /// Columns of a metric's rows, in its unit, in ascending order of node. They are computed at each
  /// call: those of all metrics take more memory than the tree.
  Column<uint32_t> rowNodes(const std::string &name) const;
  Column<uint64_t> rowField(const std::string &name, uint64_t MetricValues::*field) const;
  Column<double> rowSpreads(const std::string &name) const; // m2

  /// The windows up to the last cut; their sums are at most those of the tree.
  const Windows::Reading &windows() const { return windows_; }
  /// One row of a window: the events at a node and their sum, in the metric's unit.
  struct WindowRow {
    uint32_t node;
    int64_t count;
    int64_t total;
  };
  /// Rows of the window at `place` by metric, in ascending order of node. Totals of durations of
  /// calls are without the time of the call itself, which is the row of the host time.
  std::map<std::string, std::vector<WindowRow>> windowRows(size_t place) const;
  /// The steps that were kept whole.
  const Exemplars::Reading &exemplars() const { return exemplars_; }
  /// What the thread or the collector of a recorder is called.
  std::string labelOf(uint32_t recorder) const;
  /// The node of the tree for a node of a recorder; UINT32_MAX: none.
  uint32_t placeOf(uint32_t recorder, uint32_t node) const;
  /// Metrics with rows of which windows know nothing, because they are estimated at each reading.
  std::vector<std::string> estimatedMetrics() const;
  double nsPerTick() const { return ns_per_tick_; }

private:
  /// Call `visit(node, values, is_ticks)` for each row of a metric.
  template <typename Visit> void forEachRow(const std::string &name, Visit visit) const;

  /// Ticks as ns, rounded half up: std::llround takes ten times as long.
  uint64_t toNs(uint64_t ticks) const {
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    return static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick_ + 0.5);
  }
  int64_t signedNs(int64_t ticks) const { // corrections of sums may be negative
    int64_t ns = static_cast<int64_t>(toNs(static_cast<uint64_t>(ticks < 0 ? -ticks : ticks)));
    return ticks < 0 ? -ns : ns;
  }

  Windows::Reading windows_; // both read before the tree, which may grow meanwhile
  Exemplars::Reading exemplars_;
  std::map<uint32_t, std::string> labels_;
  OrderedTree tree_;
  std::vector<std::pair<uint32_t, uint32_t>> sites_; // recorder and node of each site
  double ns_per_tick_;
};

} // namespace deepcontext
