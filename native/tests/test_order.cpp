#include <functional>
#include <random>

#include "core/merge.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

/// A merged tree put together by hand; each node has a frame of its own.
class Tree {
public:
  Tree() { add(0, FrameKind::kRoot); }

  uint32_t add(uint32_t parent, FrameKind kind, uint8_t flags = 0) {
    auto id = static_cast<uint32_t>(merged.parent.size());
    merged.frames.push_back({kind, id, 0, 0});
    merged.parent.push_back(parent);
    merged.frame.push_back(id);
    merged.flags.push_back(flags);
    merged.cost_of.push_back(id);
    merged.costs.push_back({{}, 1000 + id});
    phases.push_back(0);
    return id;
  }

  /// The phase that node `id` gets.
  Phase phase(uint32_t id) const {
    OrderedTree ordered = orderTree(merged);
    Column<uint8_t> found = phasesOf(ordered, phases);
    for (size_t place = 0; place < ordered.frame.size(); ++place) {
      if (ordered.frame[place] == id) {
        return static_cast<Phase>(found[place]);
      }
    }
    return Phase::kNone;
  }

  MergedTree merged;
  std::vector<uint8_t> phases; // by frame
};

/// Depth-first by recursion over child lists: the definition.
Column<uint32_t> preOrder(const MergedTree &tree) {
  std::vector<std::vector<uint32_t>> children(tree.parent.size());
  for (uint32_t id = 1; id < tree.parent.size(); ++id) {
    children[tree.parent[id]].push_back(id);
  }
  Column<uint32_t> order;
  std::function<void(uint32_t)> visit = [&](uint32_t id) {
    order.push_back(id);
    for (uint32_t child : children[id]) {
      visit(child);
    }
  };
  visit(0);
  return order;
}

} // namespace

TEST(a_lone_root) {
  OrderedTree ordered = orderTree(Tree().merged);
  CHECK_EQ(ordered.parent.size(), 1u);
  CHECK_EQ(ordered.parent[0], -1);
  CHECK_EQ(ordered.subtree_end[0], 1);
}

TEST(a_small_tree_by_hand) {
  Tree tree;
  uint32_t a = tree.add(0, FrameKind::kThread);  // 1
  uint32_t b = tree.add(0, FrameKind::kThread);  // 2
  uint32_t a1 = tree.add(a, FrameKind::kPython); // 3
  tree.add(b, FrameKind::kPython);               // 4
  tree.add(a1, FrameKind::kPython);              // 5
  tree.add(a, FrameKind::kPython);               // 6
  OrderedTree ordered = orderTree(tree.merged);
  CHECK((ordered.frame == Column<uint32_t>{0, 1, 3, 5, 6, 2, 4}));
  CHECK((ordered.parent == Column<int32_t>{-1, 0, 1, 2, 1, 0, 5}));
  CHECK((ordered.subtree_end == Column<int32_t>{7, 5, 4, 4, 5, 7, 7}));
  CHECK_EQ(ordered.cost(4).exclusive, 1006u);
}

TEST(random_trees_follow_the_definition) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    Tree tree;
    for (uint32_t i = 1; i < 400; ++i) {
      bool is_deep = random() % 3 == 0; // some long chains, some wide nodes
      tree.add(is_deep ? i - 1 : static_cast<uint32_t>(random() % i), FrameKind::kPython);
    }
    OrderedTree ordered = orderTree(tree.merged);
    CHECK(ordered.frame == preOrder(tree.merged));
    for (int32_t place = 1; place < 400; ++place) {
      int32_t parent = ordered.parent[place];
      CHECK(parent >= 0 && parent < place && place < ordered.subtree_end[parent]);
      CHECK(ordered.subtree_end[place] <= ordered.subtree_end[parent]);
      CHECK_EQ(tree.merged.parent[ordered.frame[place]], ordered.frame[parent]);
    }
  }
}

TEST(a_chain_of_a_million_nodes_needs_no_stack) {
  Tree tree;
  for (uint32_t i = 0; i < 1'000'000; ++i) {
    tree.add(i, FrameKind::kPython);
  }
  OrderedTree ordered = orderTree(tree.merged);
  CHECK_EQ(ordered.parent[1'000'000], 999'999);
  CHECK_EQ(ordered.subtree_end[0], 1'000'001);
}

TEST(rows_of_metrics_follow_their_nodes_in_ascending_order) {
  Tree tree;
  uint32_t a = tree.add(0, FrameKind::kThread);
  uint32_t b = tree.add(0, FrameKind::kThread);
  uint32_t inner = tree.add(a, FrameKind::kOperator);
  MetricValues seven, nine;
  seven.total = 7;
  nine.total = 9;
  tree.merged.metrics[3] = {{b, 0, nine}, {inner, 0, seven}};
  OrderedTree ordered = orderTree(tree.merged);
  const MetricRows &rows = ordered.metrics[3];
  CHECK_EQ(rows.size(), 2u);
  CHECK_EQ(rows[0].node, 2u); // inner comes third in the creation order, second below the root
  CHECK_EQ(rows[0].values.total, 7u);
  CHECK_EQ(rows[1].node, 3u);
  CHECK_EQ(rows[1].values.total, 9u);
}

TEST(a_frames_phase_is_inherited_until_another_frame_has_one) {
  Tree tree;
  uint32_t step = tree.add(0, FrameKind::kPython);
  uint32_t inside = tree.add(step, FrameKind::kPython);
  uint32_t op = tree.add(inside, FrameKind::kOperator, kFlagSequenced);
  uint32_t load = tree.add(inside, FrameKind::kPython);
  uint32_t copy = tree.add(load, FrameKind::kOperator);
  tree.phases[step] = static_cast<uint8_t>(Phase::kOptimizer);
  tree.phases[load] = static_cast<uint8_t>(Phase::kDataLoading);
  CHECK(tree.phase(step) == Phase::kOptimizer);
  CHECK(tree.phase(inside) == Phase::kOptimizer);
  CHECK(tree.phase(op) == Phase::kOptimizer);
  CHECK(tree.phase(load) == Phase::kDataLoading);
  CHECK(tree.phase(copy) == Phase::kDataLoading);
}

TEST(a_backward_operator_is_backward_whatever_it_hangs_below) {
  Tree tree;
  uint32_t module = tree.add(0, FrameKind::kModule);
  uint32_t forward = tree.add(module, FrameKind::kOperator, kFlagSequenced);
  uint32_t backward = tree.add(forward, FrameKind::kOperator, kFlagBackward);
  uint32_t nested = tree.add(backward, FrameKind::kOperator, kFlagSequenced);
  CHECK(tree.phase(module) == Phase::kForward);
  CHECK(tree.phase(forward) == Phase::kForward);
  CHECK(tree.phase(backward) == Phase::kBackward);
  CHECK(tree.phase(nested) == Phase::kBackward);
}

TEST(a_closure_in_an_optimizer_step_is_forward) {
  Tree tree;
  uint32_t step = tree.add(0, FrameKind::kScope);
  uint32_t closure = tree.add(step, FrameKind::kPython);
  uint32_t module = tree.add(closure, FrameKind::kModule);
  uint32_t masked = tree.add(module, FrameKind::kOperator);
  uint32_t loss = tree.add(closure, FrameKind::kOperator, kFlagSequenced);
  uint32_t part = tree.add(loss, FrameKind::kOperator);
  uint32_t backward = tree.add(part, FrameKind::kOperator, kFlagBackward);
  uint32_t update = tree.add(step, FrameKind::kOperator, kFlagSequenced);
  tree.phases[step] = static_cast<uint8_t>(Phase::kOptimizer);
  CHECK(tree.phase(closure) == Phase::kOptimizer);
  CHECK(tree.phase(module) == Phase::kForward);
  CHECK(tree.phase(masked) == Phase::kForward);
  CHECK(tree.phase(loss) == Phase::kForward);
  CHECK(tree.phase(part) == Phase::kForward);
  CHECK(tree.phase(backward) == Phase::kBackward);
  CHECK(tree.phase(update) == Phase::kOptimizer);
}

TEST(operators_outside_of_everything) {
  Tree tree;
  uint32_t thread = tree.add(0, FrameKind::kThread);
  uint32_t plain = tree.add(thread, FrameKind::kOperator);
  uint32_t sequenced = tree.add(thread, FrameKind::kOperator, kFlagSequenced);
  CHECK(tree.phase(thread) == Phase::kNone);
  CHECK(tree.phase(plain) == Phase::kOther);
  CHECK(tree.phase(sequenced) == Phase::kForward);
}

TEST(frames_without_a_given_phase_have_none) {
  Tree tree;
  uint32_t last = tree.add(0, FrameKind::kPython);
  tree.phases.clear(); // shorter than the frames
  CHECK(tree.phase(last) == Phase::kNone);
}
