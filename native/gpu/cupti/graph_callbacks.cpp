// What CUPTI tells of CUDA graphs while they are made, on the thread that makes them. Instantiating
// a graph clones it, which is told as any new graph: each node as announced, created and cloned.
// The driver then makes a second copy whose nodes are only announced, and moves the nodes of child
// graphs (moved_nodes.h). A node's type is told when it is announced, and at no other time (seen
// with CUDA 13.0).
#include "gpu/cupti/collector.h"

namespace deepcontext::gpu::cupti {

namespace {

/// Whether a node leaves a record of its own, or may hold nodes that do. A conditional node holds
/// nodes that may not run.
bool leavesRecord(uint32_t node_type) {
  switch (node_type) {
  case abi::cupti::kNodeKernel:
  case abi::cupti::kNodeMemcpy:
  case abi::cupti::kNodeMemset:
  case abi::cupti::kNodeChildGraph:
    return true;
  default:
    return node_type > abi::cupti::kNodeConditional; // of a release that is not known
  }
}

} // namespace

/// The number of the silent graph that the call replays; 0 for a replay that counts as a launch.
uint32_t CuptiCollector::noteReplay(const abi::cupti::CallbackData &call) {
  if (__builtin_expect(!attribution_.silent_graphs.any(), 1) || !call.parameters ||
      !RecorderRegistry::isRecording()) {
    return 0;
  }
  auto &parameters = *static_cast<const abi::cupti::GraphLaunchParameters *>(call.parameters);
  return attribution_.silent_graphs.noteReplay(parameters.executable);
}

void CuptiCollector::onGraph(uint32_t id, const abi::cupti::GraphData &graph) {
  SilentGraphs &silent = attribution_.silent_graphs;
  switch (id) {
  case abi::cupti::kResourceGraphCreated:
    silent.graphCreated(graph.graph);
    break;
  case abi::cupti::kResourceGraphDestroy:
    silent.graphDestroyed(graph.graph);
    followMovedNodes(graph.graph);
    break;
  case abi::cupti::kResourceGraphNodeCreateStarting:
    silent.nodeAnnounced(graph.graph, leavesRecord(graph.node_type));
    break;
  case abi::cupti::kResourceGraphExecCreated:
    silent.instantiated(graph.graph_exec, graph.graph);
    break;
  case abi::cupti::kResourceGraphExecDestroy:
    silent.executableDestroyed(graph.graph_exec);
    break;
  default:
    onGraphNode(id, graph);
  }
}

void CuptiCollector::followMovedNodes(const void *graph) {
  auto ask = [this](void *node) {
    uint64_t id = 0;
    return library_.GetGraphNodeId(node, &id) == abi::cupti::kSuccess ? id : 0;
  };
  moved_nodes_.graphDestroyed(graph, ask, [this](uint64_t from, uint64_t to) {
    attribution_.graphs.cloned(to, from);
    attribution_.graphs.destroyed(from);
  });
}

void CuptiCollector::onGraphNode(uint32_t id, const abi::cupti::GraphData &graph) {
  uint64_t node = 0;
  if (library_.GetGraphNodeId(graph.node, &node) != abi::cupti::kSuccess) {
    return;
  }
  switch (id) {
  case abi::cupti::kResourceGraphNodeCreated:
    attribution_.silent_graphs.nodeCreated(graph.graph);
    calls_.withdrawLaunch();
    if (RecorderRegistry::isRecording()) {
      Recorder &recorder = RecorderRegistry::current();
      attribution_.graphs.captured(node, {recorder.index(), currentContext(recorder)->id});
    }
    break;
  case abi::cupti::kResourceGraphNodeCloned: {
    uint64_t original = 0;
    if (library_.GetGraphNodeId(graph.original_node, &original) == abi::cupti::kSuccess) {
      attribution_.graphs.cloned(node, original);
      // Of older releases it is not known whether the handle is valid when the graph's end is told.
      if (library_.version >= abi::cupti::kVersionEndOfGraphFirst) {
        moved_nodes_.cloned(graph.graph, graph.node, node);
      }
    }
    break;
  }
  case abi::cupti::kResourceGraphNodeDestroy:
    moved_nodes_.nodeDestroyed(graph.graph, graph.node);
    attribution_.graphs.destroyed(node);
    break;
  default:
    break; // of whole graphs
  }
}

/// Whether CUPTI tells of graph nodes. Of whole graphs it tells or not: without, every replay
/// counts as a launch that should leave a record.
bool CuptiCollector::enableGraphCallbacks(const Serial &cupti) {
  auto enable = [this, &cupti](uint32_t id) {
    return cupti->EnableCallback(1, subscriber_, abi::cupti::kDomainResource, id) ==
           abi::cupti::kSuccess;
  };
  bool has_nodes =
      library_.GetGraphNodeId != nullptr && enable(abi::cupti::kResourceGraphNodeCreated) &&
      enable(abi::cupti::kResourceGraphNodeCloned) && enable(abi::cupti::kResourceGraphNodeDestroy);
  if (has_nodes && enable(abi::cupti::kResourceGraphDestroy) &&
      enable(abi::cupti::kResourceGraphNodeCreateStarting) &&
      enable(abi::cupti::kResourceGraphExecCreated) &&
      enable(abi::cupti::kResourceGraphExecDestroy)) {
    enable(abi::cupti::kResourceGraphCreated); // last, because without it no graph is silent
  }
  return has_nodes;
}

} // namespace deepcontext::gpu::cupti
