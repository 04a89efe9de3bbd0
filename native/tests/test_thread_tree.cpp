#include "core/thread_tree.h"

#include <random>
#include <set>
#include <thread>

#include "tests/check.h"

using namespace deepcontext;

TEST(equal_identities_are_one_node) {
  ThreadTree tree;
  Node *first = tree.child(tree.root(), FrameKind::kPython, 7, 30);
  Node *other = tree.child(tree.root(), FrameKind::kPython, 7, 32);
  CHECK(first != other);
  CHECK_EQ(tree.child(tree.root(), FrameKind::kPython, 7, 30), first);
  CHECK_EQ(tree.child(tree.root(), FrameKind::kPython, 7, 32), other);
  CHECK_EQ(tree.size(), 3u);
}

TEST(every_part_of_the_identity_tells_nodes_apart) {
  ThreadTree tree;
  Node *parent = tree.child(tree.root(), FrameKind::kPython, 1, 1);
  std::set<Node *> nodes = {
      tree.root(),
      parent,
      tree.child(tree.root(), FrameKind::kOperator, 1, 1),
      tree.child(tree.root(), FrameKind::kPython, 2, 1),
      tree.child(tree.root(), FrameKind::kPython, 1, 2),
      tree.child(parent, FrameKind::kPython, 1, 1),
  };
  CHECK_EQ(nodes.size(), 6u);
  CHECK_EQ(tree.size(), 6u);
}

TEST(a_node_keeps_what_it_was_made_with) {
  ThreadTree tree;
  Node *parent = tree.child(tree.root(), FrameKind::kThread, 5, 0);
  Node *node = tree.child(parent, FrameKind::kOperator, 1ull << 63, 9);
  CHECK_EQ(node->parent, parent);
  CHECK(node->kind == FrameKind::kOperator);
  CHECK_EQ(node->a, 1ull << 63);
  CHECK_EQ(node->b, 9u);
  CHECK_EQ(tree.node(node->id), node);
  CHECK_EQ(node->cost()->duration.count(), 0u);
  CHECK_EQ(int{node->flags.load()}, 0);
}

TEST(children_in_any_order_are_found) {
  constexpr uint64_t kChildren = 20;
  ThreadTree tree;
  std::vector<Node *> made;
  for (uint64_t i = 0; i < kChildren; ++i) {
    made.push_back(tree.child(tree.root(), FrameKind::kPython, i, 0));
  }
  std::mt19937_64 random(5);
  uint32_t wrong = 0;
  uint64_t position = 0;
  for (int i = 0; i < 10'000; ++i) {
    bool is_in_order = random() % 4 != 0;
    position = is_in_order ? (position + 1) % kChildren : random() % kChildren;
    wrong += tree.child(tree.root(), FrameKind::kPython, position, 0) != made[position];
  }
  CHECK_EQ(wrong, 0u);
  CHECK_EQ(tree.size(), kChildren + 1);
}

TEST(a_cleared_tree_does_not_find_what_it_had) {
  ThreadTree tree;
  for (int round = 0; round < 2; ++round) { // so that each sibling knows the next
    tree.child(tree.root(), FrameKind::kPython, 1, 0);
    tree.child(tree.root(), FrameKind::kPython, 2, 0);
  }
  tree.clear();
  CHECK_EQ(tree.child(tree.root(), FrameKind::kPython, 1, 0), tree.node(1));
  CHECK_EQ(tree.size(), 2u);
  CHECK_EQ(tree.child(tree.root(), FrameKind::kPython, 2, 0), tree.node(2));
  CHECK_EQ(tree.size(), 3u);
}

TEST(the_index_grows_past_a_hundred_thousand_nodes) {
  constexpr uint32_t kNodes = 120'000;
  ThreadTree tree;
  std::mt19937_64 random(11);
  std::vector<Node *> made = {tree.root()};
  std::vector<Node *> parents = {nullptr};
  for (uint32_t i = 1; i <= kNodes; ++i) {
    Node *parent = made[random() % made.size()];
    made.push_back(tree.child(parent, FrameKind::kPython, i, i % 5));
    parents.push_back(parent);
  }
  CHECK_EQ(tree.size(), kNodes + 1);
  uint32_t wrong = 0;
  for (uint32_t i = kNodes; i >= 1; --i) {
    wrong += tree.child(parents[i], FrameKind::kPython, i, i % 5) != made[i];
    wrong += tree.node(i) != made[i] || made[i]->parent != parents[i] || made[i]->a != i;
  }
  CHECK_EQ(wrong, 0u);
  CHECK_EQ(tree.size(), kNodes + 1);
  CHECK_EQ(tree.refused(), 0u);
}

TEST(a_full_tree_gives_the_parent_and_counts) {
  ThreadTree tree;
  tree.setLimit(3);
  Node *first = tree.child(tree.root(), FrameKind::kPython, 1, 0);
  Node *second = tree.child(first, FrameKind::kPython, 2, 0);
  CHECK_EQ(tree.child(second, FrameKind::kPython, 3, 0), second);
  CHECK_EQ(tree.child(first, FrameKind::kPython, 4, 0), first);
  CHECK_EQ(tree.refused(), 2u);
  CHECK_EQ(tree.size(), 3u);
  CHECK_EQ(tree.child(first, FrameKind::kPython, 2, 0), second); // what is there is still found
  CHECK_EQ(tree.refused(), 2u);
}

TEST(no_limit_lets_the_tree_outgrow_its_chunks) {
  constexpr uint32_t kMost = ThreadTree::kChunkNodes * ThreadTree::kMaxChunks;
  ThreadTree tree;
  CHECK_EQ(tree.limit(), kMost);
  tree.setLimit(kMost + 1);
  CHECK_EQ(tree.limit(), kMost);
  tree.setLimit(UINT32_MAX);
  CHECK_EQ(tree.limit(), kMost);
}

TEST(clear_forgets_nodes_and_metrics) {
  ThreadTree tree;
  for (uint64_t i = 0; i < 5000; ++i) { // past one chunk and one growth of the index
    Node *node = tree.child(tree.root(), FrameKind::kOperator, i, 0);
    node->cost()->duration.add(10);
    node->cost()->addExclusive(10);
    node->setFlag(kFlagBackward);
  }
  tree.setLimit(1);
  tree.child(tree.root(), FrameKind::kOperator, 77'777, 0);
  tree.clear();
  tree.setLimit(100);
  CHECK_EQ(tree.size(), 1u);
  CHECK_EQ(tree.refused(), 0u);
  CHECK(tree.root()->kind == FrameKind::kRoot);
  Node *node = tree.child(tree.root(), FrameKind::kOperator, 42, 0);
  CHECK_EQ(node->id, 1u);
  CHECK_EQ(node->cost()->duration.count(), 0u);
  CHECK_EQ(node->cost()->exclusive.load(), 0u);
  CHECK_EQ(int{node->flags.load()}, 0);
  CHECK_EQ(tree.size(), 2u);
}

TEST(a_frame_has_no_cost_until_something_is_charged_to_it) {
  ThreadTree tree;
  Node *frame = tree.child(tree.root(), FrameKind::kPython, 1, 0);
  CHECK(frame->cost() == nullptr);
  CHECK_EQ(frame->calls(), 0u);
  CHECK(tree.child(frame, FrameKind::kOperator, 2, 0)->cost() != nullptr);
  tree.cost(frame).duration.add(5);
  CHECK_EQ(frame->calls(), 1u);
  CHECK_EQ(&tree.cost(frame), frame->cost());
  tree.clear();
  CHECK(tree.child(tree.root(), FrameKind::kPython, 1, 0)->cost() == nullptr);
}

TEST(flags_that_a_node_lacks_are_added_to_those_it_has) {
  ThreadTree tree;
  tree.root()->setFlag(kFlagBackward);
  tree.root()->setFlag(static_cast<NodeFlag>(kFlagBackward | kFlagSequenced));
  CHECK(tree.root()->hasFlag(kFlagBackward));
  CHECK(tree.root()->hasFlag(kFlagSequenced));
}

TEST(a_node_has_one_row_a_metric) {
  ThreadTree tree;
  Node *node = tree.child(tree.root(), FrameKind::kKernel, 1, 0);
  Node *other = tree.child(tree.root(), FrameKind::kKernel, 2, 0);
  MetricRow &first = tree.metric(node, 3);
  MetricRow &second = tree.metric(node, 4);
  CHECK(&first != &second);
  CHECK(&tree.metric(other, 3) != &first);
  for (uint16_t i = 10; i < 2000; ++i) { // rows stay where they are
    tree.metric(other, i);
  }
  CHECK_EQ(&tree.metric(node, 3), &first);
  CHECK_EQ(&tree.metric(node, 4), &second);
  tree.clear();
  node = tree.child(tree.root(), FrameKind::kKernel, 1, 0);
  CHECK(node->firstMetric() == nullptr);
  CHECK_EQ(tree.metric(node, 3).count(), 0u);
}

TEST(readers_may_follow_metrics_while_the_owner_adds_some) {
  ThreadTree tree;
  Node *node = tree.child(tree.root(), FrameKind::kKernel, 1, 0);
  std::atomic<bool> is_done{false};
  std::atomic<uint64_t> wrong{0};
  std::thread reader([&] {
    while (!is_done.load()) {
      uint16_t expected = 0;
      for (MetricSlot *slot = node->firstMetric(); slot;
           slot = slot->next.load(std::memory_order_acquire)) {
        MetricValues seen = slot->row.read();
        wrong += slot->metric != expected++ || (seen.count > 0 && seen.total != slot->metric);
      }
    }
  });
  for (uint16_t metric = 0; metric < 500; ++metric) {
    tree.metric(node, metric).add(metric);
  }
  is_done = true;
  reader.join();
  CHECK_EQ(wrong.load(), 0u);
}

TEST(readers_see_whole_nodes_while_the_owner_grows_the_tree) {
  constexpr uint32_t kNodes = 60'000;
  ThreadTree tree;
  std::atomic<bool> is_done{false};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> looked{0};
  auto read = [&] {
    bool is_last = false;
    do {
      is_last = is_done.load();
      uint32_t size = tree.size();
      for (uint32_t id = 1; id < size; ++id) {
        const Node *node = tree.node(id);
        bool is_whole = node->id == id && node->a == id * 3ull && node->parent->id < id &&
                        node->kind == FrameKind::kOperator;
        MetricValues values = node->cost()->duration.read();
        // One event of `id` ticks each time: whatever part of it is visible, extremes agree.
        bool is_plausible = values.count == 0 || (values.minimum == id && values.maximum == id);
        wrong += !(is_whole && is_plausible);
        ++looked;
      }
    } while (!is_last);
  };
  std::thread first(read), second(read);
  std::mt19937_64 random(3);
  for (uint32_t id = 1; id <= kNodes; ++id) {
    Node *parent = tree.node(static_cast<uint32_t>(random() % id));
    Node *node = tree.child(parent, FrameKind::kOperator, id * 3ull, 0);
    node->cost()->duration.add(id);
    node->cost()->addExclusive(id);
  }
  is_done = true;
  first.join();
  second.join();
  CHECK_EQ(wrong.load(), 0u);
  CHECK(looked.load() >= 2u * kNodes); // each reader saw the full tree once
  CHECK_EQ(tree.size(), kNodes + 1);
}
