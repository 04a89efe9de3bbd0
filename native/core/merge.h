#pragma once
// One tree out of the threads' trees: links resolved, equal frames in equal contexts joined.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/recorder.h"

namespace deepcontext {

/// A frame as the profile shows it; texts are interned. A frame of kind kLink is not shown; its
/// values are charged to its parent.
struct FrameRecord {
  FrameKind kind;
  uint32_t name;
  uint32_t file;
  uint32_t line;
  bool operator==(const FrameRecord &other) const {
    return kind == other.kind && name == other.name && file == other.file && line == other.line;
  }
};

/// Turns a node's opaque identity into a frame.
class FrameResolver {
public:
  virtual ~FrameResolver() = default;
  virtual FrameRecord resolve(const Node &node) const = 0;
};

/// A row that is not kept at its node, in the metric's unit.
struct ForeignRow {
  uint32_t recorder; // index
  uint32_t node;
  uint16_t metric;
  MetricValues values;
};

/// Rows of one metric besides the durations: (node, values), one row a node.
using MetricRows = std::vector<std::pair<uint32_t, MetricValues>>;

/// Columns of the merged tree, in creation order: a parent comes before its children. Node 0 is the
/// root and its own parent. Times are in ticks.
struct MergedTree {
  std::vector<FrameRecord> frames;
  std::vector<uint32_t> parent;
  std::vector<uint32_t> frame;
  std::vector<uint8_t> flags;
  std::vector<MetricValues> duration;
  std::vector<uint64_t> exclusive;
  std::map<uint16_t, MetricRows> metrics; // by MetricRegistry id; nodes in no order
};

/// A merged tree laid out as the profile file keeps it: depth-first, so that the subtree of node n
/// is the slice [n, subtree_end[n]). Times are in ticks.
struct OrderedTree {
  std::vector<int32_t> parent; // root: -1
  std::vector<uint32_t> frame;
  std::vector<uint8_t> phase;
  std::vector<int32_t> subtree_end;
  std::vector<MetricValues> duration;
  std::vector<uint64_t> exclusive;
  std::map<uint16_t, MetricRows> metrics; // rows in ascending order of node
};

/// Lay `tree` out depth-first, children in the order of creation, and give each node its phase, by
/// the first rule that applies: the phase of its frame in `frame_phase`; backward if the framework
/// ran it as part of a backward pass; forward for a module or an operator that autograd numbered;
/// its parent's phase. In an optimizer's step, modules and operators with a backward belong to a
/// closure and are forward.
OrderedTree orderTree(const MergedTree &tree, const std::vector<uint8_t> &frame_phase);

/// Merge the trees of `recorders` while their threads may go on writing. `labels` names a thread by
/// the index of its recorder. Costs about 100 ns a node; needs no lock of the writers.
MergedTree mergeTrees(const std::vector<Recorder *> &recorders,
                      const std::map<uint32_t, std::string> &labels, const FrameResolver &resolver,
                      const std::vector<ForeignRow> &rows = {});

} // namespace deepcontext
