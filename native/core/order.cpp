#include "core/merge.h"

#include <algorithm>

namespace deepcontext {

namespace {

/// `column` with the value of each node at its new position.
template <typename Value>
Column<Value> moved(const Column<Value> &column, const Column<uint32_t> &position) {
  Column<Value> placed(column.size());
  for (size_t id = 0; id < column.size(); ++id) {
    placed[position[id]] = column[id];
  }
  return placed;
}

bool isBackward(const OrderedTree &tree, size_t id) {
  return tree.frames[tree.frame[id]].kind == FrameKind::kOperator &&
         (tree.flags[id] & kFlagBackward);
}

/// Nodes with a backward operator somewhere below them.
std::vector<bool> differentiated(const OrderedTree &tree) {
  std::vector<bool> found(tree.parent.size(), false);
  for (size_t id = tree.parent.size(); id-- > 1;) {
    if (found[id] || isBackward(tree, id)) {
      found[static_cast<size_t>(tree.parent[id])] = true;
    }
  }
  return found;
}

Phase phaseOf(const OrderedTree &tree, size_t id, Phase given, Phase inherited,
              bool is_differentiated) {
  if (given != Phase::kNone) {
    return given;
  }
  if (isBackward(tree, id)) {
    return Phase::kBackward;
  }
  FrameKind kind = tree.frames[tree.frame[id]].kind;
  if (inherited == Phase::kOptimizer) {
    // An optimizer calls the closure given to step(). The optimizer itself may run operators that
    // autograd numbers, but these have no backward.
    bool is_closure =
        kind == FrameKind::kModule ||
        (kind == FrameKind::kOperator && (tree.flags[id] & kFlagSequenced) && is_differentiated);
    return is_closure ? Phase::kForward : Phase::kOptimizer;
  }
  if (inherited != Phase::kNone) {
    return inherited;
  }
  if (kind == FrameKind::kModule) {
    return Phase::kForward;
  }
  if (kind == FrameKind::kOperator) {
    return (tree.flags[id] & kFlagSequenced) ? Phase::kForward : Phase::kOther;
  }
  return Phase::kNone;
}

} // namespace

OrderedTree orderTree(MergedTree tree) {
  size_t count = tree.parent.size();
  Column<uint32_t> subtree_size(count, 1);
  for (size_t id = count; id-- > 1;) { // a parent's id is smaller than its children's
    subtree_size[tree.parent[id]] += subtree_size[id];
  }
  Column<uint32_t> position(count);
  Column<uint32_t> next_child(count, 1); // offset of the next child below its parent
  for (size_t id = 1; id < count; ++id) {
    uint32_t parent = tree.parent[id];
    position[id] = position[parent] + next_child[parent];
    next_child[parent] += subtree_size[id];
  }
  next_child = Column<uint32_t>();
  OrderedTree ordered;
  ordered.parent.resize(count);
  ordered.subtree_end.resize(count);
  for (size_t id = 0; id < count; ++id) {
    uint32_t place = position[id];
    ordered.parent[place] = id == 0 ? -1 : static_cast<int32_t>(position[tree.parent[id]]);
    ordered.subtree_end[place] = static_cast<int32_t>(place + subtree_size[id]);
  }
  ordered.frames = std::move(tree.frames);
  ordered.frame = moved(tree.frame, position);
  ordered.flags = moved(tree.flags, position);
  ordered.cost_of = moved(tree.cost_of, position);
  ordered.costs = std::move(tree.costs);
  ordered.places = std::move(tree.places);
  for (auto &[recorder, places] : ordered.places) {
    for (uint32_t &place : places) {
      place = place < count ? position[place] : place; // a node may have been made meanwhile
    }
  }
  ordered.metrics = std::move(tree.metrics);
  for (auto &[metric, rows] : ordered.metrics) {
    for (NodeValues &row : rows) {
      row.node = position[row.node];
    }
    std::sort(rows.begin(), rows.end(),
              [](const auto &left, const auto &right) { return left.node < right.node; });
  }
  return ordered;
}

Column<uint8_t> phasesOf(const OrderedTree &tree, const std::vector<uint8_t> &frame_phase) {
  std::vector<bool> is_differentiated = differentiated(tree);
  Column<uint8_t> phases(tree.frame.size());
  for (size_t id = 0; id < phases.size(); ++id) { // parents first: a phase is inherited
    uint32_t frame = tree.frame[id];
    Phase inherited =
        id == 0 ? Phase::kNone : static_cast<Phase>(phases[static_cast<size_t>(tree.parent[id])]);
    Phase given =
        frame < frame_phase.size() ? static_cast<Phase>(frame_phase[frame]) : Phase::kNone;
    phases[id] = static_cast<uint8_t>(phaseOf(tree, id, given, inherited, is_differentiated[id]));
  }
  return phases;
}

} // namespace deepcontext
