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

/// Values of one metric at a node.
struct NodeValues {
  uint32_t node;
  uint32_t recorder; // index, of a node that is not merged yet
  MetricValues values;
};
/// In a merged tree: one row a node, in ascending order of node.
using MetricRows = Column<NodeValues>;
/// Rows that are not kept at their nodes, in the metric's unit, by MetricRegistry id.
using ForeignRows = std::map<uint16_t, MetricRows>;
/// By the index of a recorder: the merged node of each of its nodes.
using MergedPlaces = std::map<uint32_t, Column<uint32_t>>;

/// What the events of a node add up to, in ticks.
struct CostValues {
  MetricValues duration;
  uint64_t exclusive = 0;
};

/// Columns of the merged tree, in creation order: a parent comes before its children. Node 0 is the
/// root and its own parent. Times are in ticks.
struct MergedTree {
  std::vector<FrameRecord> frames;
  Column<uint32_t> parent;
  Column<uint32_t> frame;
  Column<uint8_t> flags;
  Column<uint32_t> cost_of;               // index in `costs`
  Column<CostValues> costs;               // the first one, of nodes without any, is 0
  std::map<uint16_t, MetricRows> metrics; // by MetricRegistry id
  MergedPlaces places;

  const CostValues &cost(uint32_t node) const { return costs[cost_of[node]]; }
};

/// A merged tree laid out as the profile file keeps it: depth-first, so that the subtree of node n
/// is the slice [n, subtree_end[n]). Times are in ticks.
struct OrderedTree {
  std::vector<FrameRecord> frames;
  Column<int32_t> parent; // root: -1
  Column<uint32_t> frame;
  Column<uint8_t> flags;
  Column<int32_t> subtree_end;
  Column<uint32_t> cost_of;
  Column<CostValues> costs;
  std::map<uint16_t, MetricRows> metrics;
  MergedPlaces places;

  const CostValues &cost(uint32_t node) const { return costs[cost_of[node]]; }
};

/// Lay `tree` out depth-first, children in the order of creation.
OrderedTree orderTree(MergedTree tree);

/// The phase of each node, by the first rule that applies: the phase of its frame in `frame_phase`;
/// backward if the framework ran it as part of a backward pass; forward for a module or an operator
/// that autograd numbered; its parent's phase. In an optimizer's step, modules and operators with a
/// backward belong to a closure and are forward.
Column<uint8_t> phasesOf(const OrderedTree &tree, const std::vector<uint8_t> &frame_phase);

/// Merge the trees of `recorders` while their threads may go on writing. `labels` names a thread by
/// the index of its recorder. Costs about 100 ns and 60 bytes a node; needs no lock of the writers.
MergedTree mergeTrees(const std::vector<Recorder *> &recorders,
                      const std::map<uint32_t, std::string> &labels, const FrameResolver &resolver,
                      ForeignRows rows = {});

} // namespace deepcontext
