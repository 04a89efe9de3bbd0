// Graphs of the fake CUPTI: captured, made node by node, updated, with conditional nodes; control.h says
// what each function does.
#include "control.h"
#include "cupti_device.h"

using namespace fake::cupti;
using fake::Work;

namespace {

/// Put a node into a graph; the lock is held.
uint64_t addNode(fake::Graph &graph, Work work, uint64_t ns) {
  uint64_t node = state().device.next_node++;
  work.end_ns = ns; // the duration, until it is replayed
  graph.works.push_back(work);
  graph.nodes.push_back(node);
  return node;
}

} // namespace

namespace fake::cupti {

bool becomesNode(Work work, uint64_t ns) {
  State &s = state();
  uint32_t graph = 0;
  uint64_t node = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    auto capturing = s.capturing.find(work.stream);
    if (capturing == s.capturing.end()) {
      return false;
    }
    graph = capturing->second;
    work.is_of_body = s.bodies.count(work.stream) > 0;
    node = addNode(s.device.graphs[graph], work, ns);
  }
  tellGraphNode(abi::kResourceGraphNodeCreated, graph, node, 0);
  return true;
}

} // namespace fake::cupti

FAKE_API void fake_memory_node(uint32_t stream) {
  State &s = state();
  uint32_t graph = 0;
  uint64_t node = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    graph = s.capturing.at(stream);
    node = s.device.next_node++;
  }
  tellGraphNode(abi::kResourceGraphNodeCreated, graph, node, 0);
}

FAKE_API void fake_capture_begin(uint32_t stream) {
  State &s = state();
  Call call(kBeginCapture);
  std::lock_guard<std::mutex> lock(s.mutex);
  s.capturing[stream] = s.device.next_graph++;
}
FAKE_API uint32_t fake_capture_end(uint32_t stream) {
  State &s = state();
  Call call(kEndCapture);
  std::lock_guard<std::mutex> lock(s.mutex);
  uint32_t graph = s.capturing[stream];
  s.capturing.erase(stream);
  return graph;
}

FAKE_API uint32_t fake_graph_instantiate(uint32_t graph) {
  State &s = state();
  fake::Graph executable;
  uint32_t id = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    executable = s.device.graphs[graph];
    executable.sources = executable.nodes;
    for (uint64_t &node : executable.nodes) {
      node = s.device.next_node++;
    }
    id = s.device.next_graph++;
    s.device.graphs[id] = executable;
  }
  for (size_t i = 0; i < executable.nodes.size(); ++i) {
    // CUPTI tells of a clone's node twice: as of any new one, and as of a clone.
    tellGraphNode(abi::kResourceGraphNodeCreated, id, executable.nodes[i], 0);
    tellGraphNode(abi::kResourceGraphNodeCloned, id, executable.nodes[i], executable.sources[i]);
  }
  return id;
}

FAKE_API void fake_graph_launch(uint32_t executable, uint32_t stream) {
  State &s = state();
  fake::Graph graph;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    graph = s.device.graphs[executable];
  }
  Call call(kGraphLaunch);
  for (size_t i : graph.order()) {
    Work work = graph.works[i];
    uint64_t duration_ns = work.end_ns;
    work.stream = stream;
    work.correlation = call.correlation;
    work.graph_exec = executable;
    work.graph_node = graph.nodes[i];
    work.source_node = graph.sources[i];
    s.device.schedule(work, duration_ns);
  }
}

FAKE_API void fake_graph_destroy(uint32_t graph) {
  State &s = state();
  fake::Graph gone;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    gone = s.device.graphs[graph];
    s.device.graphs.erase(graph);
  }
  for (uint64_t node : gone.nodes) {
    tellGraphNode(abi::kResourceGraphNodeDestroy, graph, node, 0);
  }
}

FAKE_API uint32_t fake_graph_create() {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().device.next_graph++;
}

FAKE_API void fake_graph_add(uint32_t graph, const char *kernel, uint64_t ns) {
  State &s = state();
  Work work;
  work.name = s.device.intern(kernel);
  Call call(idOfCall("cuGraphAddKernelNode_v2"));
  uint64_t node = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    node = addNode(s.device.graphs[graph], work, ns);
  }
  tellGraphNode(abi::kResourceGraphNodeCreated, graph, node, 0);
}

FAKE_API int fake_graph_update(uint32_t executable, uint32_t graph) {
  State &s = state();
  Call call(idOfCall("cuGraphExecUpdate_v2"));
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.device.graphs[executable].update(s.device.graphs[graph]);
}

FAKE_API void fake_graph_set_node(uint32_t executable, uint32_t place, const char *kernel,
                                  uint64_t ns) {
  State &s = state();
  const char *name = s.device.intern(kernel);
  Call call(idOfCall("cuGraphExecKernelNodeSetParams_v2"));
  std::lock_guard<std::mutex> lock(s.mutex);
  Work &work = s.device.graphs[executable].works.at(place);
  work.name = name;
  work.end_ns = ns;
}

FAKE_API void fake_conditional_begin(uint32_t stream, uint32_t body_stream) {
  State &s = state();
  uint32_t graph = 0;
  uint64_t node = 0;
  {
    Call call(idOfCall("cuGraphAddNode_v2"));
    {
      std::lock_guard<std::mutex> lock(s.mutex);
      graph = s.capturing.at(stream);
      node = s.device.next_node++;
    }
    tellGraphNode(abi::kResourceGraphNodeCreated, graph, node, 0); // which leaves no record
  }
  Call call(idOfCall("cuStreamBeginCaptureToGraph"));
  std::lock_guard<std::mutex> lock(s.mutex);
  s.capturing[body_stream] = graph;
  s.bodies.insert(body_stream);
}

FAKE_API void fake_conditional_end(uint32_t body_stream) {
  Call call(kEndCapture);
  std::lock_guard<std::mutex> lock(state().mutex);
  state().capturing.erase(body_stream);
  state().bodies.erase(body_stream);
}

FAKE_API void fake_set_iterations(uint32_t executable, uint32_t times) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().device.graphs[executable].iterations = times;
}
