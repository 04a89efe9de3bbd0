#include "core/thread_tree.h"

namespace deepcontext {

uint64_t ThreadTree::Indexed::hashOf(const Identity &identity) {
  uint64_t hash = (reinterpret_cast<uintptr_t>(identity.parent) >> 6) * 0x9E3779B97F4A7C15u;
  hash ^= identity.a * 0xC2B2AE3D27D4EB4Fu;
  hash ^= (identity.b + static_cast<uint64_t>(identity.kind)) * 0x165667B19E3779F9u;
  hash ^= hash >> 29;
  hash *= 0xBF58476D1CE4E5B9u;
  return hash ^ (hash >> 32);
}

ThreadTree::ThreadTree() {
  append(nullptr, FrameKind::kRoot, 0, 0);
}

Node *ThreadTree::append(Node *parent, FrameKind kind, uint64_t a, uint64_t b) {
  uint32_t id = size_.load(std::memory_order_relaxed);
  std::atomic<Node *> &chunk = chunks_[id / kChunkNodes];
  if (!chunk.load(std::memory_order_relaxed)) {
    nodes_.emplace_back(kChunkNodes);
    chunk.store(nodes_.back().data(), std::memory_order_release);
  }
  Node *node = this->node(id);
  node->parent = parent;
  node->a = a;
  node->b = b;
  node->last_child = nullptr;
  node->next_sibling = nullptr;
  node->sites = nullptr;
  node->id = id;
  node->kind = kind;
  node->flags.store(0, std::memory_order_relaxed);
  node->duration.reset();
  node->exclusive.store(0, std::memory_order_relaxed);
  node->metrics.store(nullptr, std::memory_order_relaxed);
  size_.store(id + 1, std::memory_order_release);
  return node;
}

Node *ThreadTree::findOrCreate(Node *parent, FrameKind kind, uint64_t a, uint64_t b) {
  if (const Indexed *known = index_.find(Identity{parent, kind, a, b})) {
    return follow(parent, known->node);
  }
  if (size_.load(std::memory_order_relaxed) >= limit_) {
    refused_.store(refused_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return parent;
  }
  if (!index_.makeRoom()) {
    throw std::bad_alloc();
  }
  Node *node = append(parent, kind, a, b);
  index_.insert({node});
  return follow(parent, node);
}

/// Note that `child` was found after the parent's last one.
Node *ThreadTree::follow(Node *parent, Node *child) {
  if (Node *last = parent->last_child) {
    last->next_sibling = child;
  }
  return parent->last_child = child;
}

MetricRow &ThreadTree::metric(Node *node, uint16_t metric) {
  std::atomic<MetricSlot *> *place = &node->metrics;
  while (MetricSlot *slot = place->load(std::memory_order_relaxed)) {
    if (slot->metric == metric) {
      return slot->row;
    }
    place = &slot->next;
  }
  MetricSlot &fresh = slots_.emplace_back();
  fresh.metric = metric;
  place->store(&fresh, std::memory_order_release);
  return fresh.row;
}

void ThreadTree::clear() {
  index_.clear();
  refused_.store(0, std::memory_order_relaxed);
  slots_.clear();
  size_.store(0, std::memory_order_release);
  append(nullptr, FrameKind::kRoot, 0, 0);
}

} // namespace deepcontext
