#include "core/thread_tree.h"

namespace deepcontext {

namespace {

uint64_t hashIdentity(const Node *parent, FrameKind kind, uint64_t a, uint64_t b) {
  uint64_t hash = (reinterpret_cast<uintptr_t>(parent) >> 6) * 0x9E3779B97F4A7C15u;
  hash ^= a * 0xC2B2AE3D27D4EB4Fu;
  hash ^= (b + static_cast<uint64_t>(kind)) * 0x165667B19E3779F9u;
  hash ^= hash >> 29;
  hash *= 0xBF58476D1CE4E5B9u;
  return hash ^ (hash >> 32);
}

} // namespace

ThreadTree::ThreadTree() : index_(kFirstIndex) {
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
  size_t mask = index_.size() - 1;
  size_t slot = hashIdentity(parent, kind, a, b) & mask;
  while (Node *node = index_[slot]) {
    if (node->parent == parent && node->a == a && node->b == b && node->kind == kind) {
      parent->last_child = node;
      return node;
    }
    slot = (slot + 1) & mask;
  }
  if (size_.load(std::memory_order_relaxed) >= limit_) {
    refused_.store(refused_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return parent;
  }
  Node *node = append(parent, kind, a, b);
  index_[slot] = node;
  parent->last_child = node;
  if (size_.load(std::memory_order_relaxed) * 2 > index_.size()) {
    growIndex();
  }
  return node;
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

void ThreadTree::growIndex() {
  std::vector<Node *> bigger(index_.size() * 2);
  size_t mask = bigger.size() - 1;
  for (Node *node : index_) {
    if (node) {
      size_t slot = hashIdentity(node->parent, node->kind, node->a, node->b) & mask;
      while (bigger[slot]) {
        slot = (slot + 1) & mask;
      }
      bigger[slot] = node;
    }
  }
  index_.swap(bigger);
}

void ThreadTree::clear() {
  index_.assign(kFirstIndex, nullptr);
  refused_.store(0, std::memory_order_relaxed);
  slots_.clear();
  size_.store(0, std::memory_order_release);
  append(nullptr, FrameKind::kRoot, 0, 0);
}

} // namespace deepcontext
