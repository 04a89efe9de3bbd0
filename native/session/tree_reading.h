#pragma once
// The tree of the running or last session, as the profile file keeps it.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/merge.h"

namespace deepcontext {

/// Rows of one metric in its unit, in ascending order of node.
struct MetricTable {
  std::string name;
  bool has_spread; // minimum, maximum and m2 mean something
  MetricRows rows;
};

/// The merged tree laid out depth-first, and its metrics.
struct NodeTable {
  OrderedTree tree;
  std::vector<MetricTable> metrics;
};

/// The threads' trees, merged at one moment. No GIL needed.
class TreeReading {
public:
  /// `thread_names`: what Python calls its threads, by Thread.ident.
  explicit TreeReading(const std::vector<std::pair<uint64_t, std::string>> &thread_names);

  const std::vector<FrameRecord> &frames() const { return tree_.frames; }
  size_t nodeCount() const { return tree_.parent.size(); }
  /// `frame_phase`: see `orderTree`.
  NodeTable nodes(const std::vector<uint8_t> &frame_phase) const;

private:
  MergedTree tree_;
  double ns_per_tick_;
};

} // namespace deepcontext
