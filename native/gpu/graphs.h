#pragma once
// Where graph nodes were captured.
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace deepcontext::gpu {

/// A node of a thread's tree.
struct TreePlace {
  uint32_t recorder;
  uint32_t node;
};

/// From a graph node's id to the call path that captured it. Written when graphs are made, cloned
/// and destroyed, read by the draining thread for graph records; the mutex is held for a look-up.
class GraphTable {
public:
  void captured(uint64_t graph_node, TreePlace place);
  /// The node of an executable graph, made from a captured node. The vendor may have reported it as
  /// `captured` before.
  void cloned(uint64_t graph_node, uint64_t from);
  /// Records of it may still come, so it is forgotten at the second `forgetDestroyed` from now.
  void destroyed(uint64_t graph_node);
  void forgetDestroyed(bool is_final);
  bool find(uint64_t graph_node, TreePlace *place) const;
  size_t size() const;
  void clear();

private:
  // Bounds the memory of a program that makes graphs and keeps them.
  static constexpr size_t kMost = 1u << 20;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, TreePlace> places_;
  std::vector<uint64_t> destroyed_, destroyed_before_;
};

} // namespace deepcontext::gpu
