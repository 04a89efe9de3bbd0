#pragma once
// The calling context tree of one thread: written by its owner, readable by anyone at any time.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/frame_kind.h"
#include "core/lazy_array.h"
#include "core/metric_row.h"
#include "core/probe_table.h"

namespace deepcontext {

struct AllocationSite;

/// A metric of a node other than its durations; the slots of one node form a list.
struct MetricSlot {
  MetricRow row;
  std::atomic<MetricSlot *> next{nullptr};
  uint16_t metric = 0; // see MetricRegistry
};

/// What the events of a node add up to: one cache line, written by each of them.
struct alignas(64) NodeCost {
  MetricRow duration;                 // ticks per call, inclusive
  std::atomic<uint64_t> exclusive{0}; // ticks without nested operators and scopes
  std::atomic<MetricSlot *> metrics{nullptr};

  void addExclusive(uint64_t value) {
    exclusive.store(exclusive.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
};
static_assert(sizeof(NodeCost) == 64);

/// A frame in its context. Identity (parent, kind, a, b) never changes after publication.
///
/// The meaning of `a` and `b` depends on the kind: interned name; code id and instruction; module
/// instance; for kLink, recorder and node id.
struct alignas(64) Node {
  Node *parent;
  uint64_t a;
  uint64_t b;
  Node *last_child;                 // owner only: the last child found, tried first
  Node *next_sibling;               // owner only: the child found after this one, tried second
  AllocationSite *sites;            // owner only: what this context allocated, see AllocationLedger
  std::atomic<NodeCost *> own_cost; // null while it has none; see ThreadTree::cost
  uint32_t id;
  FrameKind kind;
  std::atomic<uint8_t> flags;

  /// Whether it is the child with this identity of its parent.
  bool is(FrameKind other_kind, uint64_t other_a, uint64_t other_b) const {
    return a == other_a && b == other_b && kind == other_kind;
  }
  /// Null where nothing was measured. Any thread.
  NodeCost *cost() const { return own_cost.load(std::memory_order_acquire); }
  MetricSlot *firstMetric() const {
    const NodeCost *found = cost();
    return found ? found->metrics.load(std::memory_order_acquire) : nullptr;
  }
  uint64_t calls() const {
    const NodeCost *found = cost();
    return found ? found->duration.count() : 0;
  }
  bool hasFlag(NodeFlag flag) const { return flags.load(std::memory_order_relaxed) & flag; }
  void setFlag(NodeFlag flag) {
    uint8_t old = flags.load(std::memory_order_relaxed);
    if ((old & flag) != flag) { // `flag` may be several flags
      flags.store(old | flag, std::memory_order_relaxed);
      ++flagsSet();
    }
  }
  /// How many flags the calling thread has set: what it derived from flags holds while it sets
  /// none.
  static uint64_t &flagsSet() {
    static thread_local uint64_t count = 0;
    return count;
  }
};
static_assert(sizeof(Node) == 64);

/// Prefix tree of the call paths of one thread. One writer (the owner), concurrent readers of
/// `size()` and `node(i)`. No lock; allocates only when a path is seen for the first time.
class ThreadTree {
public:
  static constexpr uint32_t kChunkNodes = 1024;
  static constexpr uint32_t kMaxChunks = 4096;
  /// Of an operator, with the index; a Python frame takes 64 less.
  static constexpr size_t kNodeBytes = sizeof(Node) + sizeof(NodeCost) + 16;

  ThreadTree();
  ThreadTree(const ThreadTree &) = delete;
  ThreadTree &operator=(const ThreadTree &) = delete;

  Node *root() { return node(0); }

  /// The child of `parent` with this identity, made if absent. When the tree is full, returns the
  /// parent, so that events are counted one level up, and `refused()` rises.
  Node *child(Node *parent, FrameKind kind, uint64_t a, uint64_t b) {
    Node *last = parent->last_child;
    if (last && last->is(kind, a, b)) {
      return last;
    }
    // A program repeats its lines and their operators in the same order.
    Node *next = last ? last->next_sibling : nullptr;
    if (next && next->is(kind, a, b)) {
      return parent->last_child = next;
    }
    return findOrCreate(parent, kind, a, b);
  }

  /// The cost of a node, made if absent. Frames have none until something is charged to them: most
  /// are only on the way to an operator. Owner only.
  NodeCost &cost(Node *node) {
    NodeCost *found = node->own_cost.load(std::memory_order_relaxed);
    return __builtin_expect(found != nullptr, 1) ? *found : addCost(node);
  }

  /// The row of one more metric of a node, made if absent. Owner only.
  MetricRow &metric(Node *node, uint16_t metric);

  uint32_t size() const { return size_.load(std::memory_order_acquire); }
  Node *node(uint32_t id) const {
    return &chunks_[id / kChunkNodes].load(std::memory_order_acquire)[id % kChunkNodes];
  }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  /// The most nodes the tree may have; never more than its chunks can hold.
  void setLimit(uint32_t nodes) { limit_ = std::min(nodes, kChunkNodes * kMaxChunks); }
  uint32_t limit() const { return limit_; }

  /// Forget everything but keep the memory. Owner only, and no reader may be active.
  void clear();

private:
  static constexpr size_t kFirstIndex = 512;

  Node *findOrCreate(Node *parent, FrameKind kind, uint64_t a, uint64_t b);
  Node *append(Node *parent, FrameKind kind, uint64_t a, uint64_t b);
  static Node *follow(Node *parent, Node *child);
  NodeCost &addCost(Node *node);

  struct Identity {
    const ThreadTree &tree;
    const Node *parent;
    FrameKind kind;
    uint64_t a, b;
    uint32_t hash;
  };
  /// Keeps the hash, so that neither growing nor an unequal neighbour in the table reads a node.
  struct Indexed {
    uint32_t id = 0; // the root's, which is not in the index: a free slot
    uint32_t kept_hash = 0;
    bool isFree() const { return id == 0; }
    bool isOf(const Identity &identity) const {
      if (kept_hash != identity.hash) {
        return false;
      }
      const Node *node = identity.tree.node(id);
      return node->parent == identity.parent && node->is(identity.kind, identity.a, identity.b);
    }
    uint64_t hash() const { return kept_hash; }
    static uint64_t hashOf(const Identity &identity) { return identity.hash; }
  };
  static uint32_t hashOf(const Node *parent, FrameKind kind, uint64_t a, uint64_t b);

  LazyArray<std::atomic<Node *>> chunks_{kMaxChunks};
  std::vector<LazyArray<Node>> nodes_;     // memory of the chunks; owner only
  std::vector<LazyArray<NodeCost>> costs_; // in the order of their making; owner only
  uint32_t cost_count_ = 0;
  std::atomic<uint32_t> size_{0};
  std::atomic<uint64_t> refused_{0};
  uint32_t limit_ = kChunkNodes * kMaxChunks;
  std::deque<MetricSlot> slots_; // a deque never moves its elements
  ProbeTable<Indexed, 75> index_{kFirstIndex};
};

} // namespace deepcontext
