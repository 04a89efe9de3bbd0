#pragma once
// What both fakes of AMD's profiling libraries share: a toy HIP runtime in terms of its API calls.
//
// The library gives a `Tool`: how to tell about a call, and about work that was put on the device.
#include <functional>
#include <string>

#include "control.h"
#include "device.h"

namespace fake {

/// One HIP call while it lasts.
struct HipCall {
  const char *function;
  uint64_t correlation;
  void *arguments[2] = {nullptr, nullptr}; // as the fake's tool lays them out
  uint64_t slot = 0;                       // the tool's own, from enter to exit
};

constexpr uint64_t kStagingBytes = 4u << 20;
inline thread_local bool t_is_pageable = false; // host memory of the next copies
inline constexpr const char *kLaunchFunctions[] = {
    "hipLaunchKernel",          "hipExtLaunchKernel",         "hipModuleLaunchKernel",
    "hipExtModuleLaunchKernel", "hipLaunchCooperativeKernel", "hipModuleLaunchCooperativeKernel",
    "hipLaunchKernelExC",       "hipDrvLaunchKernelEx"};
inline thread_local const char *t_launch_function = kLaunchFunctions[0];

/// Graph handles are their numbers, as pointers.
inline void *handleOf(uint32_t graph) { return reinterpret_cast<void *>(uintptr_t{graph}); }

class HipDevice {
public:
  /// Tells enter and exit; the pointer `result` outlives the exit.
  struct Scope {
    HipDevice &owner;
    HipCall call;
    void *result = nullptr;

    Scope(HipDevice &owner, const char *function, void *first = nullptr)
        : owner(owner), call{function, owner.next_correlation.fetch_add(1), {first, nullptr}, 0} {
      if (owner.tell) {
        owner.tell(call, true);
      }
    }
    ~Scope() {
      if (owner.tell) {
        owner.tell(call, false);
      }
    }
  };

  Device device;
  std::atomic<uint64_t> next_correlation{1};
  std::function<void(HipCall &, bool is_enter)> tell; // about a call; no lock is held
  std::function<void(Work &)> about_to_dispatch;      // on the launching thread

  std::function<void(uint64_t bytes, bool is_host)> about_to_allocate; // the same

  void launch(const char *kernel, uint32_t stream, uint64_t ns) {
    Work work;
    work.name = device.intern(kernel);
    work.stream = stream;
    Scope call(*this, t_launch_function);
    if (device.is_lazy && device.mustLoad(kernel)) {
      Work code; // copied by the run time, without a call of its own
      code.what = What::kCopy;
      code.name = "HtoD";
      code.bytes = kCodeBytes;
      code.correlation = call.call.correlation;
      dispatch(code, kCodeCopyNs);
    }
    {
      std::lock_guard<std::mutex> lock(device.mutex);
      auto capturing = capturing_.find(stream);
      if (capturing != capturing_.end()) {
        work.end_ns = ns; // the duration, until it is replayed
        device.graphs[capturing->second].works.push_back(work);
        return;
      }
    }
    work.correlation = call.call.correlation;
    dispatch(work, ns);
  }

  void copy(const char *direction, uint64_t bytes, uint64_t ns, bool is_blocking) {
    Work work;
    work.what = What::kCopy;
    work.name = device.intern(direction);
    work.bytes = bytes;
    Scope call(*this, is_blocking ? "hipMemcpy" : "hipMemcpyAsync");
    if (isCaptured(work, ns)) {
      return;
    }
    work.correlation = call.call.correlation;
    // Pageable memory goes through a pinned buffer of the run time, part by part.
    uint64_t part = t_is_pageable ? std::min(bytes, kStagingBytes) : bytes;
    for (uint64_t left = bytes; left > 0; left -= work.bytes) {
      work.bytes = std::min(left, part);
      dispatch(work, ns * work.bytes / bytes);
    }
    if (is_blocking) {
      usleep(static_cast<useconds_t>(ns / 1000));
    }
  }

  int setMemory(const std::string &kind) {
    t_is_pageable = kind == "pageable";
    return kind.empty() || t_is_pageable || kind == "pinned" || kind == "managed";
  }

  int setLaunchFunction(const std::string &name) {
    for (const char *function : kLaunchFunctions) {
      if (name == function) {
        t_launch_function = function;
        return 1;
      }
    }
    return 0;
  }

  void prefetch() { Scope call(*this, "hipMemPrefetchAsync"); }

  void set(uint64_t bytes, uint64_t ns) {
    Work work;
    work.what = What::kMemset;
    work.name = device.intern("__amd_rocclr_fillBufferAligned");
    work.bytes = bytes;
    Scope call(*this, "hipMemsetAsync");
    if (isCaptured(work, ns)) {
      return;
    }
    work.correlation = call.call.correlation;
    dispatch(work, ns);
  }

  void allocate(uint64_t bytes, bool is_host) {
    Scope call(*this, is_host ? "hipHostMalloc" : "hipMalloc");
    if (about_to_allocate) {
      about_to_allocate(bytes, is_host);
    }
  }

  /// Outside of any call.
  void dispatchAlone(const char *kernel, uint64_t ns) {
    Work work;
    work.name = device.intern(kernel);
    dispatch(work, ns);
  }

  void synchronize(uint64_t ns) {
    Scope call(*this, "hipDeviceSynchronize");
    usleep(static_cast<useconds_t>(ns / 1000));
  }

  void captureBegin(uint32_t stream) {
    Scope call(*this, "hipStreamBeginCapture");
    std::lock_guard<std::mutex> lock(device.mutex);
    capturing_[stream] = device.next_graph++;
  }

  uint32_t captureEnd(uint32_t stream) {
    Scope call(*this, "hipStreamEndCapture");
    std::lock_guard<std::mutex> lock(device.mutex);
    uint32_t graph = capturing_[stream];
    capturing_.erase(stream);
    call.result = handleOf(graph);
    call.call.arguments[1] = &call.result;
    return graph;
  }

  uint32_t instantiate(uint32_t graph) {
    Scope call(*this, "hipGraphInstantiate");
    std::lock_guard<std::mutex> lock(device.mutex);
    uint32_t executable = device.next_graph++;
    Graph copy = device.graphs[graph];
    device.graphs[executable] = copy;
    call.result = handleOf(executable);
    call.call.arguments[0] = &call.result;
    call.call.arguments[1] = handleOf(graph);
    return executable;
  }

  uint32_t create() {
    Scope call(*this, "hipGraphCreate");
    std::lock_guard<std::mutex> lock(device.mutex);
    return device.next_graph++;
  }

  void add(uint32_t graph, const char *kernel, uint64_t ns) {
    Work work;
    work.name = device.intern(kernel);
    work.end_ns = ns; // the duration, until it is replayed
    Scope call(*this, "hipGraphAddKernelNode");
    call.call.arguments[0] = &call.result;
    call.call.arguments[1] = handleOf(graph);
    std::lock_guard<std::mutex> lock(device.mutex);
    device.graphs[graph].works.push_back(work);
  }

  int update(uint32_t executable, uint32_t graph) {
    Scope call(*this, "hipGraphExecUpdate", handleOf(executable));
    std::lock_guard<std::mutex> lock(device.mutex);
    return device.graphs[executable].update(device.graphs[graph]);
  }

  void setNode(uint32_t executable, uint32_t place, const char *kernel, uint64_t ns) {
    const char *name = device.intern(kernel);
    Scope call(*this, "hipGraphExecKernelNodeSetParams", handleOf(executable));
    std::lock_guard<std::mutex> lock(device.mutex);
    Work &work = device.graphs[executable].works.at(place);
    work.name = name;
    work.end_ns = ns;
  }

  void replay(uint32_t executable, uint32_t stream) {
    Graph graph;
    {
      std::lock_guard<std::mutex> lock(device.mutex);
      graph = device.graphs[executable];
    }
    Scope call(*this, "hipGraphLaunch", handleOf(executable));
    for (Work work : graph.works) {
      uint64_t duration_ns = work.end_ns;
      work.stream = stream;
      work.correlation = call.call.correlation;
      dispatch(work, duration_ns);
    }
  }

  void destroy(uint32_t graph) {
    Scope call(*this, "hipGraphExecDestroy", handleOf(graph));
    std::lock_guard<std::mutex> lock(device.mutex);
    device.graphs.erase(graph);
  }

  void reset() {
    device.reset();
    t_is_pageable = false;
    t_launch_function = kLaunchFunctions[0];
    std::lock_guard<std::mutex> lock(device.mutex);
    capturing_.clear();
    next_correlation = 1;
  }

private:
  /// While a stream captures, copies and memsets become nodes of its graph, too. Between places of
  /// the device, they are kernels of the run time's own.
  bool isCaptured(Work work, uint64_t ns) {
    std::lock_guard<std::mutex> lock(device.mutex);
    if (capturing_.empty()) {
      return false;
    }
    if (work.what == What::kCopy && std::string(work.name) == "DtoD") {
      work.what = What::kKernel;
      work.name = "__amd_rocclr_copyBuffer";
    }
    work.end_ns = ns; // the duration, until it is replayed
    device.graphs[capturing_.begin()->second].works.push_back(work);
    return true;
  }

  void dispatch(Work work, uint64_t ns) {
    if (about_to_dispatch) {
      about_to_dispatch(work);
    }
    device.schedule(work, ns);
  }

  std::map<uint32_t, uint32_t> capturing_; // stream -> graph
};

/// Lose a record if a test asked for it.
inline bool isToBeLost(Device &device) {
  uint64_t count = device.drop_next.load();
  while (count > 0 && !device.drop_next.compare_exchange_weak(count, count - 1)) {
  }
  return count > 0;
}

} // namespace fake
