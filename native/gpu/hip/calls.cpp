#include "gpu/hip/calls.h"

#include "core/text.h"

namespace deepcontext::gpu {

namespace {

/// What the calling thread is doing with graphs.
struct ThreadState {
  bool is_capturing = false;
  std::vector<TreePlace> captured;
  const void *replayed = nullptr; // the executable
  uint32_t next_node = 0;         // next of the replay; 0 when the graph was not seen
  uint32_t nodes_left = 0;
  bool has_overrun = false;
};
thread_local ThreadState t_state;

/// A node of a graph that was captured before profiling began; in no table.
constexpr uint32_t kUnseenNode = UINT32_MAX;

} // namespace

HipFunction classifyHip(std::string_view function) {
  if (startsWith(function, "hipGraphLaunch")) {
    return HipFunction::kGraphLaunch;
  }
  if (function == "hipLaunchHostFunc" || function == "hipLaunchHostFunc_spt") {
    return HipFunction::kOther;
  }
  for (std::string_view beginning :
       {"hipLaunchKernel", "hipExtLaunchKernel", "hipModuleLaunch", "hipExtModuleLaunchKernel",
        "hipHccModuleLaunchKernel", "hipLaunchCooperativeKernel", "hipDrvLaunchKernelEx"}) {
    if (startsWith(function, beginning)) {
      return HipFunction::kLaunch;
    }
  }
  if (startsWith(function, "hipMemset")) {
    return HipFunction::kMemset;
  }
  if (startsWith(function, "hipMemcpy")) {
    return contains(function, "Async") ? HipFunction::kAsyncCopy : HipFunction::kBlockingCopy;
  }
  if (startsWith(function, "hipDeviceSynchronize") || startsWith(function, "hipCtxSynchronize") ||
      startsWith(function, "hipStreamSynchronize") || startsWith(function, "hipEventSynchronize")) {
    return HipFunction::kWait;
  }
  if (startsWith(function, "hipStreamBeginCapture")) {
    return HipFunction::kBeginCapture;
  }
  if (startsWith(function, "hipStreamEndCapture")) {
    return HipFunction::kEndCapture;
  }
  if (startsWith(function, "hipGraphInstantiate")) {
    return HipFunction::kInstantiate;
  }
  if (function == "hipGraphAddKernelNode" || function == "hipGraphAddMemsetNode") {
    return HipFunction::kAddNode;
  }
  if (function == "hipGraphDestroy") {
    return HipFunction::kDestroyGraph;
  }
  return function == "hipGraphExecDestroy" ? HipFunction::kDestroyExecutable : HipFunction::kOther;
}

bool isWorthATime(std::string_view function) {
  for (std::string_view beginning : {"hipGet", "hipPeek", "hipApiName", "hipKernelName"}) {
    if (startsWith(function, beginning)) {
      return false;
    }
  }
  return startsWith(function, "hip");
}

void HipGraphs::beginCapture() {
  t_state.is_capturing = true;
  t_state.captured.clear();
}

bool HipGraphs::isCapturing() const {
  return t_state.is_capturing;
}

void HipGraphs::noteKernel(TreePlace place) {
  if (t_state.is_capturing) {
    t_state.captured.push_back(place);
  }
}

void HipGraphs::added(const void *graph, TreePlace place) {
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_[graph].push_back(place);
}

void HipGraphs::endCapture(const void *graph) {
  t_state.is_capturing = false;
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_[graph] = std::move(t_state.captured);
  t_state.captured.clear();
}

void HipGraphs::instantiated(const void *executable, const void *graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = graphs_.find(graph);
  if (known == graphs_.end()) {
    return;
  }
  Executable made{next_node_, static_cast<uint32_t>(known->second.size())};
  for (const TreePlace &place : known->second) {
    table_.captured(next_node_++, place);
  }
  executables_[executable] = made;
}

void HipGraphs::destroyed(const void *graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_.erase(graph);
  auto executable = executables_.find(graph);
  if (executable != executables_.end()) {
    for (uint32_t i = 0; i < executable->second.count; ++i) {
      table_.destroyed(executable->second.first_node + i);
    }
    executables_.erase(executable);
  }
}

void HipGraphs::beginReplay(const void *executable) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = executables_.find(executable);
  bool is_known = known != executables_.end() && known->second.is_in_order;
  t_state.replayed = executable;
  t_state.next_node = is_known ? known->second.first_node : 0;
  t_state.nodes_left = is_known ? known->second.count : 0;
  t_state.has_overrun = false;
}

void HipGraphs::endReplay() {
  ThreadState &state = t_state;
  if (state.next_node != 0 && (state.nodes_left != 0 || state.has_overrun)) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto known = executables_.find(state.replayed);
    if (known != executables_.end() && known->second.is_in_order) {
      known->second.is_in_order = false;
      out_of_order_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  state.replayed = nullptr;
}

uint32_t HipGraphs::nextNode() {
  ThreadState &state = t_state;
  if (!state.replayed) {
    return 0;
  }
  if (state.nodes_left == 0) {
    state.has_overrun = true;
    return kUnseenNode;
  }
  --state.nodes_left;
  return state.next_node++;
}

void HipGraphs::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  graphs_.clear();
  executables_.clear();
  out_of_order_.store(0);
}

} // namespace deepcontext::gpu
