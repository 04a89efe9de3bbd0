#include "gpu/cupti/moved_nodes.h"

#include <algorithm>

namespace deepcontext::gpu::cupti {

void MovedNodes::cloned(const void *graph, void *node, uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (count_ < kMost) {
    graphs_[graph].emplace_back(node, id);
    ++count_;
  }
}

void MovedNodes::nodeDestroyed(const void *graph, void *node) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = graphs_.find(graph);
  if (known == graphs_.end()) {
    return;
  }
  Nodes &nodes = known->second;
  auto gone = std::find_if(nodes.begin(), nodes.end(),
                           [node](const auto &entry) { return entry.first == node; });
  if (gone != nodes.end()) {
    *gone = nodes.back();
    nodes.pop_back();
    --count_;
  }
}

void MovedNodes::graphDestroyed(const void *graph, const AskId &ask, const Move &move) {
  Nodes nodes;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto known = graphs_.find(graph);
    if (known == graphs_.end()) {
      return;
    }
    nodes = std::move(known->second);
    graphs_.erase(known);
    count_ -= nodes.size();
  }
  for (const auto &[node, id] : nodes) {
    uint64_t now = ask(node);
    if (now != 0 && now != id) {
      move(id, now);
    }
  }
}

void MovedNodes::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_.clear();
  count_ = 0;
}

} // namespace deepcontext::gpu::cupti
