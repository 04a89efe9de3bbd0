// What rocprofiler-sdk calls: on the launching thread for launches and HIP calls, on its callback
// thread for buffers. No exception escapes, and the library is not called with a lock held.
#include <string_view>

#include "core/interner.h"
#include "core/text.h"
#include "gpu/deadline.h"
#include "gpu/ranges.h"
#include "gpu/rocprofiler/collector.h"

namespace deepcontext::gpu::rocprofiler {

namespace {

thread_local uint32_t t_calls = 0; // of HIP that the thread is inside of

} // namespace

/// Once a session, at the program's first launch: the program may set the variables until HIP
/// starts.
void RocprofilerCollector::numberGpus() {
  std::vector<uint64_t> handles = hipOrder(gpus_, HipVisibility::ofProcess());
  std::lock_guard<std::mutex> lock(devices_mutex_);
  devices_.clear();
  for (size_t i = 0; i < handles.size(); ++i) {
    devices_[handles[i]] = static_cast<uint32_t>(i);
  }
  last_agent_ = last_device_ = 0;
  are_gpus_numbered_.store(true);
}

/// The number a record carries: the call in the low half, the graph node in the high one.
int RocprofilerCollector::onExternalId(uint64_t, Id, uint32_t kind, int32_t, uint64_t,
                                       abi::rocprofiler::UserData *external, void *user) {
  auto &self = *static_cast<RocprofilerCollector *>(user);
  external->value = 0;
  if (self.isRunning()) {
    if (__builtin_expect(!self.are_gpus_numbered_.load(std::memory_order_relaxed), 0)) {
      self.numberGpus();
    }
    bool is_kernel = kind == abi::rocprofiler::kRequestKernelDispatch;
    if (__builtin_expect(is_kernel && t_calls == 0, 0)) {
      self.noteForeignLaunch();
    }
    uint64_t node = is_kernel ? self.hip_graphs_.nextNode() : 0;
    external->value = node << 32 | self.calls_.noteLaunchWithInternalId();
  }
  return 0;
}

void RocprofilerCollector::onHipCall(abi::rocprofiler::CallbackRecord record,
                                     abi::rocprofiler::UserData *data, void *user) {
  auto &self = *static_cast<RocprofilerCollector *>(user);
  auto operation = static_cast<size_t>(record.operation);
  if (!self.isRunning() || isInternalThread() || operation >= self.functions_.size()) {
    return;
  }
  HipFunction function = self.functions_[operation];
  auto &call = *static_cast<const abi::rocprofiler::HipCall *>(record.payload);
  bool is_waiting = function == HipFunction::kWait || function == HipFunction::kBlockingCopy;
  bool is_timed = self.isTiming();
  if (record.phase == abi::rocprofiler::kPhaseEnter) {
    ++t_calls;
    data->value = is_waiting || is_timed ? ticks() : 0;
    self.hipCallBegins(function, call);
  } else if (record.phase == abi::rocprofiler::kPhaseExit) {
    t_calls -= t_calls > 0; // the session may have begun inside
    if (is_waiting && data->value != 0) {
      self.calls_.noteWait(self.function_names_[operation], data->value);
    }
    if (is_timed && data->value != 0) {
      self.calls_.noteTime(self.function_names_[operation], data->value);
    }
    self.hipCallEnds(function, call);
  }
}

/// The SDK asks for the ids of all packets that lie in a queue, and the streams of several threads
/// may share a queue.
void RocprofilerCollector::noteForeignLaunch() {
  if (foreign_launches_.fetch_add(1) == 0) {
    note("some kernels were dispatched by another thread than the one that launched them, so that "
         "they may be under the wrong call path");
  }
}

void RocprofilerCollector::hipCallBegins(HipFunction function,
                                         const abi::rocprofiler::HipCall &call) {
  if (function == HipFunction::kGraphLaunch) {
    hip_graphs_.beginReplay(call.graph_launch.executable);
  }
}

void RocprofilerCollector::hipCallEnds(HipFunction function,
                                       const abi::rocprofiler::HipCall &call) {
  switch (function) {
  case HipFunction::kLaunch:
  case HipFunction::kMemset:
    if (hip_graphs_.isCapturing() && RecorderRegistry::isRecording()) {
      Recorder &recorder = RecorderRegistry::current();
      hip_graphs_.noteKernel({recorder.index(), currentContext(recorder)->id});
    }
    break;
  case HipFunction::kAddNode:
    if (RecorderRegistry::isRecording()) {
      Recorder &recorder = RecorderRegistry::current();
      hip_graphs_.added(call.add_node.graph, {recorder.index(), currentContext(recorder)->id});
    }
    break;
  case HipFunction::kBeginCapture:
    hip_graphs_.beginCapture();
    break;
  case HipFunction::kEndCapture:
    hip_graphs_.endCapture(call.end_capture.graph ? *call.end_capture.graph : nullptr);
    break;
  case HipFunction::kInstantiate:
    hip_graphs_.instantiated(call.instantiate.executable ? *call.instantiate.executable : nullptr,
                             call.instantiate.graph);
    break;
  case HipFunction::kGraphLaunch:
    hip_graphs_.endReplay();
    break;
  case HipFunction::kDestroyGraph:
  case HipFunction::kDestroyExecutable:
    hip_graphs_.destroyed(call.destroy.graph);
    break;
  default:
    break;
  }
}

void RocprofilerCollector::onAllocation(abi::rocprofiler::CallbackRecord record,
                                        abi::rocprofiler::UserData *, void *user) {
  auto &self = *static_cast<RocprofilerCollector *>(user);
  if (!self.isRunning() || isInternalThread() || record.phase != abi::rocprofiler::kPhaseExit) {
    return;
  }
  auto &call = *static_cast<const abi::rocprofiler::AllocationCall *>(record.payload);
  for (const HipGpu &gpu : self.gpus_) { // the run time also allocates host memory
    if (gpu.handle == call.agent.handle) {
      self.calls_.noteAllocation(call.bytes);
      return;
    }
  }
}

void RocprofilerCollector::onMarker(abi::rocprofiler::CallbackRecord record,
                                    abi::rocprofiler::UserData *, void *user) {
  auto &self = *static_cast<RocprofilerCollector *>(user);
  if (!self.isRunning()) {
    return;
  }
  if (record.operation == abi::rocprofiler::kMarkerRangePush &&
      record.phase == abi::rocprofiler::kPhaseEnter) {
    pushRange(static_cast<const abi::rocprofiler::MarkerCall *>(record.payload)->message);
  } else if (record.operation == abi::rocprofiler::kMarkerRangePop &&
             record.phase == abi::rocprofiler::kPhaseExit) {
    popRange();
  }
}

void RocprofilerCollector::onCodeObject(abi::rocprofiler::CallbackRecord record,
                                        abi::rocprofiler::UserData *, void *user) {
  auto &self = *static_cast<RocprofilerCollector *>(user);
  if (record.operation != abi::rocprofiler::kCodeObjectKernelSymbol ||
      record.phase != abi::rocprofiler::kPhaseEnter) {
    return; // names of unloaded kernels stay, because records may still come
  }
  auto &symbol = *static_cast<const abi::rocprofiler::KernelSymbol *>(record.payload);
  std::string_view name = symbol.name ? symbol.name : "";
  constexpr std::string_view kDescriptor = ".kd";
  if (name.size() > kDescriptor.size() && endsWith(name, kDescriptor)) {
    name.remove_suffix(kDescriptor.size());
  }
  std::lock_guard<std::mutex> lock(self.kernels_mutex_);
  constexpr uint64_t kMostKernels = 1u << 22;
  if (symbol.kernel < kMostKernels) {
    if (symbol.kernel >= self.kernels_.size()) {
      self.kernels_.resize(symbol.kernel + 1, {self.unknown_kernel_, 0});
    }
    self.kernels_[symbol.kernel] = {Interner::instance().intern(name),
                                    symbol.vector_registers + symbol.accumulation_registers};
  }
}

void RocprofilerCollector::onBuffer(Id, Id, abi::rocprofiler::RecordHeader **headers, size_t count,
                                    void *user, uint64_t dropped) {
  auto &self = *static_cast<RocprofilerCollector *>(user);
  Counters &counters = self.attribution_.counters;
  if (!self.isRunning() || !RecorderRegistry::isRecording()) {
    Counters::bumpShared(counters.after_stop);
    return;
  }
  std::unique_lock<std::mutex> lock = self.beginBuffer([&self] {
    uint64_t now = 0;
    return self.library_.get_timestamp(&now) == abi::rocprofiler::kSuccess ? now : 0;
  });
  std::lock_guard<std::mutex> kernels_lock(self.kernels_mutex_);
  std::lock_guard<std::mutex> devices_lock(self.devices_mutex_);
  Counters::bumpShared(counters.dropped, dropped);
  constexpr size_t kAhead = 20;
  for (size_t i = 0; i < count; ++i) {
    if (i + 2 * kAhead < count) {
      __builtin_prefetch(headers[i + 2 * kAhead]);
    }
    if (i + kAhead < count && headers[i + kAhead]) {
      auto *payload = static_cast<const char *>(headers[i + kAhead]->payload);
      __builtin_prefetch(payload); // a kernel's record takes three cache lines
      __builtin_prefetch(payload + 64);
      __builtin_prefetch(payload + 128);
    }
    bool is_traced = headers[i] && headers[i]->category == abi::rocprofiler::kCategoryTracing;
    if (is_traced && headers[i]->kind == abi::rocprofiler::kBufferKernelDispatch) {
      self.decodeKernel(
          *static_cast<const abi::rocprofiler::KernelDispatch *>(headers[i]->payload));
    } else if (is_traced && headers[i]->kind == abi::rocprofiler::kBufferMemoryCopy) {
      self.decodeCopy(*static_cast<const abi::rocprofiler::MemoryCopy *>(headers[i]->payload));
    } else {
      Counters::bump(counters.unknown_records);
    }
  }
  self.attribution_.finishBuffer();
}

uint32_t RocprofilerCollector::deviceOf(Id agent) {
  if (__builtin_expect(agent.handle != last_agent_, 0)) {
    auto known = devices_.find(agent.handle);
    last_agent_ = agent.handle;
    last_device_ = known == devices_.end() ? 0 : known->second;
  }
  return last_device_;
}

namespace {

/// Divides 32 bits where it can, because a 64-bit division is slow.
uint64_t quotient(uint64_t items, uint64_t threads) {
  if (threads == 0) {
    return 0;
  }
  if (__builtin_expect((items | threads) >> 32 == 0, 1)) {
    return static_cast<uint32_t>(items) / static_cast<uint32_t>(threads);
  }
  return items / threads;
}

} // namespace

void RocprofilerCollector::decodeKernel(const abi::rocprofiler::KernelDispatch &record) {
  const abi::rocprofiler::DispatchInfo &info = record.info;
  Kernel kernel =
      info.kernel < kernels_.size() ? kernels_[info.kernel] : Kernel{unknown_kernel_, 0};
  Activity &activity = attribution_.next();
  activity.kind = ActivityKind::kKernel;
  activity.correlation = static_cast<uint32_t>(record.correlation.external.value);
  activity.name = kernel.name;
  activity.device = deviceOf(info.agent);
  activity.stream = static_cast<uint32_t>(info.queue.handle);
  activity.start_ns = record.start;
  activity.end_ns = record.end;
  activity.bytes = 0;
  activity.graph_node = record.correlation.external.value >> 32;
  activity.captured_node = 0;
  uint64_t items = 1, threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    items *= info.grid[axis];
    threads *= info.workgroup[axis];
  }
  if (items != last_items_ || threads != last_threads_) { // often equal to the last kernel's
    last_items_ = items;
    last_threads_ = threads;
    last_blocks_ = quotient(items, threads);
  }
  activity.shape.grid_blocks = last_blocks_;
  activity.shape.block_threads = static_cast<uint32_t>(threads);
  activity.shape.registers = kernel.registers;
  activity.shape.shared_bytes = info.group_bytes;
  Counters::bump(attribution_.counters.kernels);
}

void RocprofilerCollector::decodeCopy(const abi::rocprofiler::MemoryCopy &record) {
  Activity &activity = attribution_.next();
  activity.kind = ActivityKind::kCopy;
  activity.correlation = static_cast<uint32_t>(record.correlation.external.value);
  activity.name = copy_names_[record.operation < 5 ? record.operation : 0];
  bool is_from_host = record.operation == abi::rocprofiler::kCopyHostToDevice;
  activity.device = deviceOf(is_from_host ? record.target : record.source);
  activity.stream = UINT32_MAX; // copies report no queue
  activity.start_ns = record.start;
  activity.end_ns = record.end;
  activity.bytes = record.size >= sizeof record ? record.bytes : 0;
  activity.graph_node = 0;
  activity.captured_node = 0;
  activity.shape = LaunchShape();
  Counters::bump(attribution_.counters.copies);
}

} // namespace deepcontext::gpu::rocprofiler
