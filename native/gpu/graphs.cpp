#include "gpu/graphs.h"

namespace deepcontext::gpu {

void GraphTable::captured(uint64_t graph_node, TreePlace place) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (places_.size() < kMost) {
    places_[graph_node] = place;
  }
}

void GraphTable::cloned(uint64_t graph_node, uint64_t from) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto origin = places_.find(from);
  if (origin == places_.end()) {
    places_.erase(graph_node); // was reported as captured where it was only cloned
  } else if (places_.size() < kMost) {
    TreePlace place = origin->second;
    places_[graph_node] = place;
  }
}

void GraphTable::destroyed(uint64_t graph_node) {
  std::lock_guard<std::mutex> lock(mutex_);
  destroyed_.push_back(graph_node);
  if (destroyed_.size() > kMost) { // no reader comes: bound the memory
    for (uint64_t old : destroyed_) {
      places_.erase(old);
    }
    destroyed_.clear();
  }
}

void GraphTable::forgetDestroyed(bool is_final) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (uint64_t node : destroyed_before_) {
    places_.erase(node);
  }
  destroyed_before_ = std::move(destroyed_);
  destroyed_.clear();
  if (is_final) {
    for (uint64_t node : destroyed_before_) {
      places_.erase(node);
    }
    destroyed_before_.clear();
  }
}

bool GraphTable::find(uint64_t graph_node, TreePlace *place) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = places_.find(graph_node);
  if (known == places_.end()) {
    return false;
  }
  *place = known->second;
  return true;
}

size_t GraphTable::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return places_.size();
}

void GraphTable::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  places_.clear();
  destroyed_.clear();
  destroyed_before_.clear();
}

} // namespace deepcontext::gpu
