#pragma once
// Nodes of child graphs, which get other ids when the graph around them is instantiated.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace deepcontext::gpu::cupti {

/// Instantiating a graph clones it and its child graphs. The driver then moves the nodes of the
/// clones of child graphs into the executable graph: the nodes keep their handles and get other
/// ids, which records name, and the clones are destroyed, without their nodes. No callback says
/// what the new ids are (seen with CUDA 13.0 on an H100; XLA puts its library calls into child
/// graphs). Destroying a graph in any other way is told before its nodes are destroyed, so that the
/// handles can be asked for their ids then in both cases.
class MovedNodes {
public:
  /// The id of a node's handle, 0 where it has none.
  using AskId = std::function<uint64_t(void *node)>;
  using Move = std::function<void(uint64_t from, uint64_t to)>;

  /// A graph has got this clone of a node.
  void cloned(const void *graph, void *node, uint64_t id);
  void nodeDestroyed(const void *graph, void *node);
  /// A graph is destroyed: report the nodes that have another id since they were cloned. Neither
  /// function is called with the lock held.
  void graphDestroyed(const void *graph, const AskId &ask, const Move &move);
  void clear();

private:
  using Nodes = std::vector<std::pair<void *, uint64_t>>;
  static constexpr size_t kMost = 1u << 20; // nodes; beyond, moved ones are not found
  std::mutex mutex_;
  std::unordered_map<const void *, Nodes> graphs_;
  size_t count_ = 0;
};

} // namespace deepcontext::gpu::cupti
