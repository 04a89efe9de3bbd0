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
  uint32_t graph = 0, told = 0;
  uint64_t node = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    auto capturing = s.capturing.find(work.stream);
    if (capturing == s.capturing.end()) {
      return false;
    }
    graph = capturing->second;
    auto body = s.bodies.find(work.stream);
    work.is_of_body = body != s.bodies.end();
    told = work.is_of_body ? body->second : graph;
    node = addNode(s.device.graphs[graph], work, ns);
  }
  tellNewNode(told, node, abi::kNodeKernel);
  return true;
}

} // namespace fake::cupti

namespace {

uint32_t createGraph() {
  uint32_t graph = 0;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    graph = state().device.next_graph++;
  }
  tellGraph(abi::kResourceGraphCreated, graph);
  return graph;
}

/// Put a node that leaves no record into the graph that the stream captures.
void addSilentNode(uint32_t stream, uint32_t type) {
  State &s = state();
  uint32_t graph = 0;
  uint64_t node = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    graph = s.capturing.at(stream);
    node = s.device.next_node++;
    s.device.graphs[graph].silent.push_back({node, type});
  }
  tellNewNode(graph, node, type);
}

} // namespace

FAKE_API int fake_node(uint32_t stream, const char *kind) {
  static const std::map<std::string, uint32_t> types = {{"memory", abi::kNodeMemoryAllocation},
                                                        {"host", abi::kNodeHost},
                                                        {"event", abi::kNodeEventRecord},
                                                        {"child graph", abi::kNodeChildGraph}};
  auto type = types.find(kind);
  if (type == types.end()) {
    return 0;
  }
  addSilentNode(stream, type->second);
  return 1;
}

FAKE_API void fake_capture_begin(uint32_t stream) {
  State &s = state();
  Call call(kBeginCapture);
  uint32_t graph = createGraph();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.capturing[stream] = graph;
}
FAKE_API uint32_t fake_capture_end(uint32_t stream) {
  State &s = state();
  Call call(kEndCapture);
  std::lock_guard<std::mutex> lock(s.mutex);
  uint32_t graph = s.capturing[stream];
  s.capturing.erase(stream);
  return graph;
}

namespace {

/// Tell of a clone of a child graph, in a node of `graph`.
uint32_t tellChild(uint32_t graph, uint64_t holder, const std::vector<uint64_t> &nodes,
                   const std::vector<uint64_t> &sources) {
  tellGraphNode(abi::kResourceGraphNodeCreateStarting, graph, holder, 0, abi::kNodeChildGraph);
  uint32_t clone = createGraph();
  for (size_t i = 0; i < nodes.size(); ++i) {
    tellNewNode(clone, nodes[i], abi::kNodeKernel);
    tellGraphNode(abi::kResourceGraphNodeCloned, clone, nodes[i], sources[i]);
  }
  tellGraphNode(abi::kResourceGraphNodeCreated, graph, holder, 0);
  return clone;
}

/// As CUDA 13.0 does: the child graphs are cloned, then their nodes are moved into the executable graph
/// and the clones destroyed, of which nothing but the end of the graphs is told.
void moveChildren(uint32_t id, fake::Graph &executable) {
  State &s = state();
  std::vector<std::pair<uint64_t, uint32_t>> clones; // holder, clone
  for (uint32_t child = 1; child <= executable.children.size(); ++child) {
    std::vector<uint64_t> nodes, sources;
    for (size_t i = 0; i < executable.nodes.size(); ++i) {
      if (executable.works[i].child == child) {
        nodes.push_back(executable.nodes[i]);
        sources.push_back(executable.sources[i]);
      }
    }
    uint64_t holder = 0;
    {
      std::lock_guard<std::mutex> lock(s.mutex);
      holder = s.device.next_node++;
    }
    clones.emplace_back(holder, tellChild(id, holder, nodes, sources));
  }
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    executable.handles = executable.nodes;
    for (size_t i = 0; i < executable.nodes.size(); ++i) {
      if (executable.works[i].child > 0) {
        executable.nodes[i] = s.renumbered[executable.handles[i]] = s.device.next_node++;
      }
    }
    s.device.graphs[id] = executable;
  }
  for (auto [holder, clone] : clones) {
    tellGraphNode(abi::kResourceGraphNodeDestroy, id, holder, 0);
    tellGraph(abi::kResourceGraphDestroy, clone);
  }
}

} // namespace

FAKE_API uint32_t fake_graph_instantiate(uint32_t graph) {
  State &s = state();
  fake::Graph executable;
  std::vector<fake::SilentNode> silent_sources;
  uint32_t id = createGraph(); // a clone, whose handle the executable graph has
  uint32_t bodies = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    executable = s.device.graphs[graph];
    executable.is_executable = true;
    executable.sources = executable.nodes;
    silent_sources = executable.silent;
    for (uint64_t &node : executable.nodes) {
      node = s.device.next_node++;
    }
    for (fake::SilentNode &node : executable.silent) {
      node.id = s.device.next_node++;
    }
    bodies = s.device.next_graph++;
    s.device.graphs[id] = executable;
  }
  for (size_t i = 0; i < executable.nodes.size(); ++i) {
    if (executable.works[i].child > 0) {
      continue;
    }
    // CUPTI tells of a clone's node twice: as of any new one, and as of a clone.
    uint32_t told = executable.works[i].is_of_body ? bodies : id;
    tellNewNode(told, executable.nodes[i], abi::kNodeKernel);
    tellGraphNode(abi::kResourceGraphNodeCloned, told, executable.nodes[i], executable.sources[i]);
  }
  for (size_t i = 0; i < executable.silent.size(); ++i) {
    tellNewNode(id, executable.silent[i].id, executable.silent[i].type);
    tellGraphNode(abi::kResourceGraphNodeCloned, id, executable.silent[i].id, silent_sources[i].id);
  }
  if (!executable.children.empty()) {
    moveChildren(id, executable);
  }
  tellGraph(abi::kResourceGraphExecCreated, graph, id);
  return id;
}

FAKE_API uint32_t fake_graph_instantiate_for_device(uint32_t graph, int with_parameters) {
  const uint64_t flags = abi::kFlagDeviceLaunch;
  abi::GraphInstantiateParameters given{};
  if (with_parameters) {
    given.flags_and_more = &flags;
  } else {
    given.flags = flags;
  }
  Call call(idOfCall(with_parameters ? "cuGraphInstantiateWithParams" : "cuGraphInstantiateWithFlags"),
            &given);
  return fake_graph_instantiate(graph);
}

FAKE_API void fake_graph_launch(uint32_t executable, uint32_t stream) {
  State &s = state();
  fake::Graph graph;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    graph = s.device.graphs[executable];
  }
  abi::GraphLaunchParameters parameters{};
  parameters.executable = reinterpret_cast<void *>(static_cast<uintptr_t>(executable));
  Call call(kGraphLaunch, &parameters);
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
  if (gone.is_executable) {
    tellGraph(abi::kResourceGraphExecDestroy, 0, graph);
  }
  tellGraph(abi::kResourceGraphDestroy, graph);
  for (uint64_t node : gone.handles.empty() ? gone.nodes : gone.handles) {
    tellGraphNode(abi::kResourceGraphNodeDestroy, graph, node, 0);
  }
  for (const fake::SilentNode &node : gone.silent) {
    tellGraphNode(abi::kResourceGraphNodeDestroy, graph, node.id, 0);
  }
}

FAKE_API uint32_t fake_graph_create() {
  return createGraph();
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
  tellNewNode(graph, node, abi::kNodeKernel);
}

FAKE_API void fake_graph_add_child(uint32_t graph, uint32_t child) {
  State &s = state();
  std::vector<uint64_t> nodes, sources;
  uint64_t holder = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    fake::Graph &target = s.device.graphs[graph];
    const fake::Graph source = s.device.graphs[child];
    holder = s.device.next_node++;
    target.children.push_back(holder);
    for (size_t i = 0; i < source.works.size(); ++i) {
      Work work = source.works[i];
      work.child = static_cast<uint32_t>(target.children.size());
      nodes.push_back(addNode(target, work, work.end_ns));
      sources.push_back(source.nodes[i]);
    }
  }
  tellChild(graph, holder, nodes, sources);
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
  uint32_t body = 0;
  {
    Call call(idOfCall("cuGraphAddNode_v2"));
    addSilentNode(stream, abi::kNodeConditional);
    body = createGraph();
  }
  Call call(idOfCall("cuStreamBeginCaptureToGraph"));
  std::lock_guard<std::mutex> lock(s.mutex);
  s.capturing[body_stream] = s.capturing.at(stream);
  s.bodies[body_stream] = body;
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
