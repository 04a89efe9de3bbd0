#include "core/merge.h"

#include <memory>
#include <thread>

#include "core/metric_registry.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

/// Operators are named by `a`; Python nodes by `a / 10`, so that several identities are one frame.
class NumberResolver final : public FrameResolver {
public:
  FrameRecord resolve(const Node &node) const override {
    uint64_t number = node.kind == FrameKind::kPython ? node.a / 10 : node.a;
    return {node.kind, Interner::instance().intern(std::to_string(number)), 0,
            static_cast<uint32_t>(node.b)};
  }
};

/// Recorders 0, 1, 2 ... labelled "t0", "t1", ...
class Threads {
public:
  explicit Threads(uint32_t count) {
    for (uint32_t index = 0; index < count; ++index) {
      owned_.push_back(std::make_unique<Recorder>(index));
      owned_.back()->label = "t" + std::to_string(index);
    }
  }
  ThreadTree &tree(uint32_t index) { return owned_[index]->tree; }
  Recorder &recorder(uint32_t index) { return *owned_[index]; }
  std::vector<Recorder *> all() const {
    std::vector<Recorder *> recorders;
    for (const auto &recorder : owned_) {
      recorders.push_back(recorder.get());
    }
    return recorders;
  }
  MergedTree merge() const { return mergeTrees(all(), {}, NumberResolver()); }

private:
  std::vector<std::unique_ptr<Recorder>> owned_;
};

Node *op(ThreadTree &tree, Node *parent, uint64_t name) {
  return tree.child(parent, FrameKind::kOperator, name, 0);
}

Node *link(ThreadTree &tree, uint32_t recorder, const Node *target) {
  return tree.child(tree.root(), FrameKind::kLink, recorder, target->id);
}

/// The path of a merged node: names from the thread down, as "t0/1/2".
std::string pathOf(const MergedTree &tree, uint32_t node) {
  std::string path(Interner::instance().text(tree.frames[tree.frame[node]].name));
  return tree.parent[node] == 0 ? path : pathOf(tree, tree.parent[node]) + "/" + path;
}

/// The merged node of a path, or 0.
uint32_t find(const MergedTree &tree, const std::string &path) {
  uint32_t found = 0;
  for (uint32_t node = 1; node < tree.parent.size(); ++node) {
    if (pathOf(tree, node) == path) {
      CHECK_EQ(found, 0u); // no path twice
      found = node;
    }
  }
  return found;
}

} // namespace

TEST(no_recorder_makes_a_lone_root) {
  MergedTree tree = mergeTrees({}, {}, NumberResolver());
  CHECK_EQ(tree.parent.size(), 1u);
  CHECK_EQ(tree.parent[0], 0u);
  CHECK(tree.frames[tree.frame[0]].kind == FrameKind::kRoot);
}

TEST(threads_are_labelled_and_a_given_label_wins) {
  Threads threads(2);
  MergedTree tree = mergeTrees(threads.all(), {{1, "loader"}}, NumberResolver());
  CHECK(find(tree, "t0") != 0);
  CHECK(find(tree, "loader") != 0);
  CHECK_EQ(tree.parent.size(), 3u);
}

TEST(threads_of_one_label_are_one_subtree) {
  Threads threads(2);
  threads.recorder(1).label = "t0";
  op(threads.tree(0), threads.tree(0).root(), 1)->cost()->duration.add(10);
  op(threads.tree(1), threads.tree(1).root(), 1)->cost()->duration.add(30);
  op(threads.tree(1), threads.tree(1).root(), 2)->cost()->addExclusive(4);
  MergedTree tree = threads.merge();
  CHECK_EQ(tree.parent.size(), 4u);
  MetricValues both = tree.cost(find(tree, "t0/1")).duration;
  CHECK_EQ(both.count, 2u);
  CHECK_EQ(both.total, 40u);
  CHECK_EQ(both.minimum, 10u);
  CHECK_EQ(both.maximum, 30u);
  CHECK_CLOSE(both.m2, 200.0, 1e-12);
  CHECK_EQ(tree.cost(find(tree, "t0/2")).exclusive, 4u);
}

TEST(identities_that_resolve_to_one_frame_are_one_node) {
  Threads threads(1);
  ThreadTree &own = threads.tree(0);
  for (uint64_t code : {71, 72}) { // two code objects, one place in the source
    Node *frame = own.child(own.root(), FrameKind::kPython, code, 5);
    op(own, frame, 1)->cost()->addExclusive(code);
  }
  own.child(own.root(), FrameKind::kPython, 71, 6); // another line
  MergedTree tree = threads.merge();
  CHECK_EQ(tree.parent.size(), 1u + 1u + 2u + 1u);
  CHECK_EQ(tree.cost(find(tree, "t0/7/1")).exclusive, 143u);
}

TEST(a_frame_that_is_not_shown_leaves_its_children_and_figures_to_its_parent) {
  class Hiding final : public FrameResolver {
  public:
    FrameRecord resolve(const Node &node) const override {
      FrameRecord record = NumberResolver().resolve(node);
      record.kind = node.kind == FrameKind::kNative ? FrameKind::kLink : record.kind;
      return record;
    }
  };
  Threads threads(1);
  ThreadTree &tree = threads.tree(0);
  Node *outer = op(tree, tree.root(), 1);
  Node *hidden = tree.child(outer, FrameKind::kNative, 2, 0);
  op(tree, tree.child(hidden, FrameKind::kNative, 3, 0), 4)->cost()->duration.add(10);
  tree.cost(hidden).addExclusive(7);
  MergedTree merged = mergeTrees(threads.all(), {}, Hiding());
  CHECK_EQ(merged.parent.size(), size_t{4}); // root, thread, 1, 4
  CHECK_EQ(pathOf(merged, 3), "t0/1/4");
  CHECK_EQ(merged.cost(2).exclusive, uint64_t{7});
  CHECK_EQ(merged.cost(3).duration.count, uint64_t{1});
}

TEST(a_link_puts_its_children_below_the_other_threads_node) {
  Threads threads(2);
  ThreadTree &forward = threads.tree(0);
  ThreadTree &backward = threads.tree(1);
  Node *made = op(forward, op(forward, forward.root(), 1), 2);
  Node *below = op(backward, link(backward, 0, made), 9);
  below->cost()->duration.add(50);
  below->setFlag(kFlagBackward);
  MergedTree tree = threads.merge();
  uint32_t node = find(tree, "t0/1/2/9");
  CHECK(node != 0);
  CHECK_EQ(tree.cost(node).duration.total, 50u);
  CHECK_EQ(int{tree.flags[node]}, int{kFlagBackward});
  CHECK_EQ(tree.parent.size(), 6u); // root, two threads, 1, 2, 9: the link itself is no node
}

TEST(what_a_link_measured_belongs_to_its_target) {
  Threads threads(2);
  Node *target = op(threads.tree(0), threads.tree(0).root(), 1);
  target->cost()->duration.add(1);
  link(threads.tree(1), 0, target)->cost()->duration.add(7);
  MergedTree tree = threads.merge();
  CHECK_EQ(tree.cost(find(tree, "t0/1")).duration.count, 2u);
  CHECK_EQ(tree.cost(find(tree, "t0/1")).duration.total, 8u);
}

TEST(links_chain_across_threads_in_any_order_of_recorders) {
  // A backward of a backward: 2 hangs below 0, 1 below 2, 0's second operator below 1.
  Threads threads(3);
  Node *first = op(threads.tree(0), threads.tree(0).root(), 1);
  Node *second = op(threads.tree(2), link(threads.tree(2), 0, first), 2);
  Node *third = op(threads.tree(1), link(threads.tree(1), 2, second), 3);
  Node *fourth = op(threads.tree(0), link(threads.tree(0), 1, third), 4);
  op(threads.tree(2), link(threads.tree(2), 0, fourth), 5)->cost()->addExclusive(6);
  MergedTree tree = threads.merge();
  uint32_t node = find(tree, "t0/1/2/3/4/5");
  CHECK(node != 0);
  CHECK_EQ(tree.cost(node).exclusive, 6u);
}

TEST(a_link_into_the_own_thread_resolves) {
  Threads threads(1);
  ThreadTree &own = threads.tree(0);
  Node *forward = op(own, own.root(), 1);
  op(own, link(own, 0, forward), 2);
  CHECK(find(threads.merge(), "t0/1/2") != 0);
}

TEST(a_link_to_a_missing_node_falls_back_to_the_own_thread) {
  Threads threads(2);
  Node *lost = op(threads.tree(1),
                  threads.tree(1).child(threads.tree(1).root(), FrameKind::kLink, 0, 1'000'000), 8);
  Node *orphan = op(threads.tree(1),
                    threads.tree(1).child(threads.tree(1).root(), FrameKind::kLink, 77, 0), 9);
  lost->cost()->addExclusive(1);
  orphan->cost()->addExclusive(2);
  MergedTree tree = threads.merge();
  CHECK_EQ(tree.cost(find(tree, "t1/8")).exclusive, 1u);
  CHECK_EQ(tree.cost(find(tree, "t1/9")).exclusive, 2u);
}

TEST(a_parent_comes_before_its_children) {
  Threads threads(3);
  Node *target = nullptr;
  for (uint32_t index : {2u, 1u, 0u}) { // links point from low recorders to high ones
    ThreadTree &own = threads.tree(index);
    Node *node = target ? link(own, index + 1, target) : own.root();
    for (uint64_t depth = 0; depth < 50; ++depth) {
      node = op(own, node, depth);
    }
    target = node;
  }
  MergedTree tree = threads.merge();
  CHECK_EQ(tree.parent.size(), 1u + 3u + 150u);
  for (uint32_t node = 1; node < tree.parent.size(); ++node) {
    CHECK(tree.parent[node] < node);
  }
}

TEST(a_detached_recorder_makes_no_thread) {
  Threads threads(2);
  threads.recorder(1).is_detached = true;
  Node *target = op(threads.tree(0), threads.tree(0).root(), 1);
  ThreadTree &detached = threads.tree(1);
  Node *kernel = detached.child(link(detached, 0, target), FrameKind::kKernel, 5, 0);
  uint16_t metric = MetricRegistry::instance().id("merge_test_ns");
  detached.metric(kernel, metric).add(40);
  detached.metric(kernel, metric).add(2);
  MergedTree tree = threads.merge();
  CHECK_EQ(tree.parent.size(), 4u);
  uint32_t node = find(tree, "t0/1/5");
  CHECK(node != 0);
  CHECK_EQ(tree.metrics[metric].size(), 1u);
  CHECK_EQ(tree.metrics[metric][0].node, node);
  CHECK_EQ(tree.metrics[metric][0].values.total, 42u);
}

TEST(extra_metrics_of_merged_nodes_are_combined) {
  Threads threads(2);
  threads.recorder(1).label = "t0";
  uint16_t bytes = MetricRegistry::instance().id("merge_test_bytes");
  uint16_t other = MetricRegistry::instance().id("merge_test_other");
  for (uint32_t index : {0u, 1u}) {
    Node *node = op(threads.tree(index), threads.tree(index).root(), 1);
    threads.tree(index).metric(node, bytes).add(index + 1);
  }
  threads.tree(1).metric(threads.tree(1).root(), other).add(9);
  Node *node = op(threads.tree(1), threads.tree(1).root(), 1);
  threads.tree(1).metric(node, other).add(8);
  MergedTree tree = threads.merge();
  CHECK_EQ(tree.metrics[bytes].size(), 1u);
  CHECK_EQ(tree.metrics[bytes][0].values.count, 2u);
  CHECK_EQ(tree.metrics[bytes][0].values.total, 3u);
  uint64_t sum = 0;
  for (const NodeValues &row : tree.metrics[other]) {
    sum += row.values.total;
  }
  CHECK_EQ(sum, 17u); // what hangs on a thread's root is not lost
}

TEST(trees_may_grow_and_link_to_each_other_while_they_are_read) {
  constexpr uint64_t kRounds = 20'000;
  Threads threads(2);
  std::atomic<uint32_t> newest{0};
  std::atomic<bool> is_done{false};
  std::thread forward([&] {
    ThreadTree &own = threads.tree(0);
    Node *step = op(own, own.root(), 1);
    for (uint64_t i = 0; i < kRounds; ++i) {
      Node *node = op(own, step, 100 + i);
      node->cost()->duration.add(5);
      newest.store(node->id, std::memory_order_release);
    }
    is_done = true;
  });
  std::thread backward([&] {
    ThreadTree &own = threads.tree(1);
    while (!is_done.load()) {
      if (uint32_t id = newest.load(std::memory_order_acquire)) {
        // Mostly newer than what the reader has looked at.
        op(own, own.child(own.root(), FrameKind::kLink, 0, id), 7)->cost()->duration.add(1);
      }
    }
  });
  do {
    MergedTree tree = threads.merge();
    uint32_t misplaced = 0;
    for (uint32_t node = 1; node < tree.parent.size(); ++node) {
      const FrameRecord &frame = tree.frames[tree.frame[node]];
      bool is_backward = Interner::instance().text(frame.name) == "7";
      misplaced += tree.parent[node] >= node;
      misplaced +=
          is_backward && tree.parent[node] <= 2; // root, thread or step: not below its forward
    }
    CHECK_EQ(misplaced, 0u);
  } while (!is_done.load());
  forward.join();
  backward.join();
  MergedTree tree = threads.merge();
  CHECK(find(tree, "t0/1/" + std::to_string(99 + kRounds)) != 0);
}
