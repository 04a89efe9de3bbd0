#include "gpu/silent_graphs.h"

namespace deepcontext::gpu {

void SilentGraphs::graphCreated(const void *graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_.erase(graph); // of an earlier graph at the same address
  if (graphs_.size() < kMostGraphs) {
    graphs_[graph] = Graph();
  }
}

void SilentGraphs::graphDestroyed(const void *graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_.erase(graph);
}

void SilentGraphs::nodeAnnounced(const void *graph, bool leaves_record) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = graphs_.find(graph);
  if (known != graphs_.end()) {
    known->second.leaves_record |= leaves_record;
    known->second.announced += !leaves_record;
  }
}

void SilentGraphs::nodeCreated(const void *graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = graphs_.find(graph);
  if (known != graphs_.end()) {
    ++known->second.created;
  }
}

void SilentGraphs::instantiated(const void *executable, const void *graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  numbers_.erase(executable); // of an earlier one at the same address
  auto known = graphs_.find(graph);
  bool is_silent = known != graphs_.end() && !known->second.leaves_record &&
                   known->second.created <= known->second.announced;
  uint32_t number = count_.load(std::memory_order_relaxed) + 1;
  if (is_silent && number < executables_.size()) {
    numbers_[executable] = number;
    count_.store(number, std::memory_order_relaxed);
  }
}

void SilentGraphs::executableDestroyed(const void *executable) {
  std::lock_guard<std::mutex> lock(mutex_);
  numbers_.erase(executable);
}

uint32_t SilentGraphs::noteReplay(const void *executable) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto number = numbers_.find(executable);
  if (number == numbers_.end() || executables_[number->second].is_revealed) {
    return 0;
  }
  ++executables_[number->second].replays;
  return number->second;
}

void SilentGraphs::noteRecord(uint32_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  Executable &executable = executables_[number];
  if (!executable.is_revealed) {
    executable.is_revealed = true;
    revealed_.fetch_add(executable.replays, std::memory_order_relaxed);
  }
}

uint64_t SilentGraphs::silentReplays() const {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t sum = 0;
  for (const Executable &executable : executables_) {
    sum += executable.is_revealed ? 0 : executable.replays;
  }
  return sum;
}

void SilentGraphs::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_.clear();
  numbers_.clear();
  executables_.fill({});
  count_.store(0);
  revealed_.store(0);
}

} // namespace deepcontext::gpu
