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

/// A frame in its context. Identity (parent, kind, a, b) never changes after publication.
///
/// The meaning of `a` and `b` depends on the kind: interned name; code id and instruction; module
/// instance; for kLink, recorder and node id.
struct alignas(64) Node {
  Node *parent;
  uint64_t a;
  uint64_t b;
  Node *last_child;      // owner only: the last child found, tried first
  Node *next_sibling;    // owner only: the child found after this one, tried second
  AllocationSite *sites; // owner only: what this context allocated, see AllocationLedger
  uint32_t id;
  FrameKind kind;
  std::atomic<uint8_t> flags;
  // second cache line: written by every event of the node
  alignas(64) MetricRow duration;     // ticks per call, inclusive
  std::atomic<uint64_t> exclusive{0}; // ticks without nested operators and scopes
  std::atomic<MetricSlot *> metrics{nullptr};

  /// Whether it is the child with this identity of its parent.
  bool is(FrameKind other_kind, uint64_t other_a, uint64_t other_b) const {
    return a == other_a && b == other_b && kind == other_kind;
  }
  void addExclusive(uint64_t value) {
    exclusive.store(exclusive.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  bool hasFlag(NodeFlag flag) const { return flags.load(std::memory_order_relaxed) & flag; }
  void setFlag(NodeFlag flag) {
    uint8_t old = flags.load(std::memory_order_relaxed);
    if ((old & flag) != flag) { // `flag` may be several flags
      flags.store(old | flag, std::memory_order_relaxed);
    }
  }
};
static_assert(sizeof(Node) == 128);

/// Prefix tree of the call paths of one thread. One writer (the owner), concurrent readers of
/// `size()` and `node(i)`. No lock; allocates only when a path is seen for the first time.
class ThreadTree {
public:
  static constexpr uint32_t kChunkNodes = 1024;
  static constexpr uint32_t kMaxChunks = 4096;
  static constexpr size_t kNodeBytes = sizeof(Node) + 4 * sizeof(Node *); // with the index

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
  struct Identity {
    const Node *parent;
    FrameKind kind;
    uint64_t a, b;
  };
  struct Indexed {
    Node *node = nullptr;
    bool isFree() const { return !node; }
    bool isOf(const Identity &identity) const {
      return node->parent == identity.parent && node->a == identity.a && node->b == identity.b &&
             node->kind == identity.kind;
    }
    uint64_t hash() const { return hashOf({node->parent, node->kind, node->a, node->b}); }
    static uint64_t hashOf(const Identity &identity);
  };

  LazyArray<std::atomic<Node *>> chunks_{kMaxChunks};
  std::vector<LazyArray<Node>> nodes_; // memory of the chunks; owner only
  std::atomic<uint32_t> size_{0};
  std::atomic<uint64_t> refused_{0};
  uint32_t limit_ = kChunkNodes * kMaxChunks;
  std::deque<MetricSlot> slots_; // a deque never moves its elements
  ProbeTable<Indexed> index_{kFirstIndex};
};

} // namespace deepcontext
