#include "core/merge.h"

#include <algorithm>

namespace deepcontext {

namespace {

/// New position of every node: depth-first, siblings in creation order. O(nodes), no recursion.
std::vector<uint32_t> depthFirst(const MergedTree &tree, std::vector<uint32_t> *subtree_size) {
  size_t count = tree.parent.size();
  subtree_size->assign(count, 1);
  for (size_t id = count; id-- > 1;) { // a parent's id is smaller than its children's
    (*subtree_size)[tree.parent[id]] += (*subtree_size)[id];
  }
  std::vector<uint32_t> position(count, 0);
  std::vector<uint32_t> next_child(count, 1); // offset of the next child below its parent
  for (size_t id = 1; id < count; ++id) {
    uint32_t parent = tree.parent[id];
    position[id] = position[parent] + next_child[parent];
    next_child[parent] += (*subtree_size)[id];
  }
  return position;
}

bool isBackward(const MergedTree &tree, size_t id) {
  return tree.frames[tree.frame[id]].kind == FrameKind::kOperator &&
         (tree.flags[id] & kFlagBackward);
}

/// Nodes with a backward operator somewhere below them.
std::vector<bool> differentiated(const MergedTree &tree) {
  std::vector<bool> found(tree.parent.size(), false);
  for (size_t id = tree.parent.size(); id-- > 1;) {
    if (found[id] || isBackward(tree, id)) {
      found[tree.parent[id]] = true;
    }
  }
  return found;
}

Phase phaseOf(const MergedTree &tree, size_t id, Phase given, Phase inherited,
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

OrderedTree orderTree(const MergedTree &tree, const std::vector<uint8_t> &frame_phase) {
  size_t count = tree.parent.size();
  std::vector<uint32_t> subtree_size;
  std::vector<uint32_t> position = depthFirst(tree, &subtree_size);
  std::vector<bool> is_differentiated = differentiated(tree);
  OrderedTree ordered;
  ordered.parent.resize(count);
  ordered.frame.resize(count);
  ordered.phase.resize(count);
  ordered.subtree_end.resize(count);
  ordered.duration.resize(count);
  ordered.exclusive.resize(count);
  for (size_t id = 0; id < count; ++id) { // parents first: a phase is inherited
    uint32_t place = position[id];
    uint32_t frame = tree.frame[id];
    bool is_root = id == 0;
    Phase inherited =
        is_root ? Phase::kNone : static_cast<Phase>(ordered.phase[position[tree.parent[id]]]);
    Phase given =
        frame < frame_phase.size() ? static_cast<Phase>(frame_phase[frame]) : Phase::kNone;
    ordered.parent[place] = is_root ? -1 : static_cast<int32_t>(position[tree.parent[id]]);
    ordered.frame[place] = frame;
    ordered.phase[place] =
        static_cast<uint8_t>(phaseOf(tree, id, given, inherited, is_differentiated[id]));
    ordered.subtree_end[place] = static_cast<int32_t>(place + subtree_size[id]);
    ordered.duration[place] = tree.duration[id];
    ordered.exclusive[place] = tree.exclusive[id];
  }
  for (const auto &[metric, rows] : tree.metrics) {
    MetricRows &target = ordered.metrics[metric];
    for (const auto &[id, values] : rows) {
      target.emplace_back(position[id], values);
    }
    std::sort(target.begin(), target.end(),
              [](const auto &left, const auto &right) { return left.first < right.first; });
  }
  return ordered;
}

} // namespace deepcontext
