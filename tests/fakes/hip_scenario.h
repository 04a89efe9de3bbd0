// What scenarios ask of either library of AMD: the same calls of HIP, and the delivery of records.
//
// Included once by each fake, below its `state()`, `deliver` and `handOver`.

FAKE_API void fake_set_shape(uint32_t grid, uint32_t block) {
  fake::t_grid = grid;
  fake::t_block = block;
}
FAKE_API void fake_memset(uint64_t bytes, uint64_t ns) { state().hip.set(bytes, ns); }
FAKE_API void fake_synchronize(uint64_t ns) { state().hip.synchronize(ns); }
FAKE_API void fake_capture_begin(uint32_t stream) { state().hip.captureBegin(stream); }
FAKE_API uint32_t fake_capture_end(uint32_t stream) { return state().hip.captureEnd(stream); }
FAKE_API uint32_t fake_graph_instantiate(uint32_t graph) { return state().hip.instantiate(graph); }
FAKE_API void fake_graph_launch(uint32_t executable, uint32_t stream) {
  state().hip.replay(executable, stream);
}
FAKE_API void fake_graph_destroy(uint32_t graph) { state().hip.destroy(graph); }
FAKE_API uint32_t fake_graph_create() { return state().hip.create(); }
FAKE_API void fake_graph_add(uint32_t graph, const char *kernel, uint64_t ns) {
  state().hip.add(graph, kernel, ns);
}
FAKE_API int fake_graph_update(uint32_t executable, uint32_t graph) {
  return state().hip.update(executable, graph);
}
FAKE_API void fake_graph_set_node(uint32_t executable, uint32_t place, const char *kernel,
                                  uint64_t ns) {
  state().hip.setNode(executable, place, kernel, ns);
}
FAKE_API void fake_deliver(int seed) { deliver(state().hip.device.takePending(seed)); }
FAKE_API void fake_deliver_on_threads(int seed, uint32_t threads) {
  fake::onThreads(state().hip.device.takePending(seed), threads, deliver);
}
FAKE_API void fake_hold_buffers(int is_holding) {
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().is_holding = is_holding != 0;
  }
  if (!is_holding) {
    handOver();
  }
}
