#pragma once
// The tree of the running or last session, as the profile file keeps it.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/merge.h"

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
  /// Call `visit(node, values)` for each row of a metric, in its unit, in ascending order of node.
  /// Rows are computed at each call: those of all metrics take more memory than the tree.
  void forEachRow(const std::string &name,
                  const std::function<void(uint32_t, const MetricValues &)> &visit) const;

private:
  OrderedTree tree_;
  double ns_per_tick_;
};

} // namespace deepcontext
