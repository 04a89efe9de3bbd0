#include "core/thread_tree.h"

namespace deepcontext {

namespace {

/// Whether nodes of this kind have a cost from the start.
bool isMeasured(FrameKind kind) {
  switch (kind) {
  case FrameKind::kRoot:
  case FrameKind::kThread:
  case FrameKind::kPython:
  case FrameKind::kModule:
  case FrameKind::kNative:
    return false;
  default:
    return true;
  }
}

} // namespace

uint32_t ThreadTree::hashOf(const Node *parent, FrameKind kind, uint64_t a, uint64_t b) {
  uint64_t hash = (reinterpret_cast<uintptr_t>(parent) >> 6) * 0x9E3779B97F4A7C15u;
  hash ^= a * 0xC2B2AE3D27D4EB4Fu;
  hash ^= (b + static_cast<uint64_t>(kind)) * 0x165667B19E3779F9u;
  hash ^= hash >> 29;
  hash *= 0xBF58476D1CE4E5B9u;
  return static_cast<uint32_t>(hash ^ (hash >> 32));
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
  node->own_cost.store(nullptr, std::memory_order_relaxed);
  if (isMeasured(kind)) {
    addCost(node);
  }
  size_.store(id + 1, std::memory_order_release);
  return node;
}

Node *ThreadTree::findOrCreate(Node *parent, FrameKind kind, uint64_t a, uint64_t b) {
  uint32_t hash = hashOf(parent, kind, a, b);
  if (const Indexed *known = index_.find(Identity{*this, parent, kind, a, b, hash})) {
    return follow(parent, this->node(known->id));
  }
  if (size_.load(std::memory_order_relaxed) >= limit_) {
    refused_.store(refused_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return parent;
  }
  if (!index_.makeRoom()) {
    throw std::bad_alloc();
  }
  Node *node = append(parent, kind, a, b);
  index_.insert({node->id, hash});
  return follow(parent, node);
}

/// Note that `child` was found after the parent's last one.
Node *ThreadTree::follow(Node *parent, Node *child) {
  if (Node *last = parent->last_child) {
    last->next_sibling = child;
  }
  return parent->last_child = child;
}

__attribute__((noinline)) NodeCost &ThreadTree::addCost(Node *node) {
  if (cost_count_ == costs_.size() * kChunkNodes) {
    costs_.emplace_back(kChunkNodes);
  }
  NodeCost &fresh = costs_[cost_count_ / kChunkNodes][cost_count_ % kChunkNodes];
  ++cost_count_;
  fresh.duration.reset();
  fresh.exclusive.store(0, std::memory_order_relaxed);
  fresh.metrics.store(nullptr, std::memory_order_relaxed);
  node->own_cost.store(&fresh, std::memory_order_release);
  return fresh;
}

MetricRow &ThreadTree::metric(Node *node, uint16_t metric) {
  std::atomic<MetricSlot *> *place = &cost(node).metrics;
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
  cost_count_ = 0;
  size_.store(0, std::memory_order_release);
  append(nullptr, FrameKind::kRoot, 0, 0);
}

} // namespace deepcontext
