// The test's side of the fake rocprofiler-sdk; control.h says what each function does.
#include "control.h"
#include "rocprofiler_device.h"

using namespace fake::rocprofiler;
using fake::Work;

namespace {

/// A program's roctx range, as libroctx would tell about it.
void tellRange(int32_t operation, const char *message) {
  for (const Tracing &tracing : listeners(abi::kCallbackMarkerCore, operation)) {
    for (uint32_t phase : {uint32_t{abi::kPhaseEnter}, uint32_t{abi::kPhaseExit}}) {
      abi::MarkerCall payload{sizeof payload, message};
      abi::CallbackRecord record{};
      record.kind = abi::kCallbackMarkerCore;
      record.operation = operation;
      record.phase = phase;
      record.payload = &payload;
      abi::UserData data{};
      tracing.callback(record, &data, tracing.user);
    }
  }
}

} // namespace

FAKE_API void fake_reset() {
  State &s = state();
  s.hip.reset();
  std::lock_guard<std::mutex> lock(s.mutex);
  // What was declared stays: a tool can register once in the life of a process.
  s.version = 10201;
  s.records = Buffer();
  s.most_records = 10'000;
  s.is_holding = false;
  s.dropped_untold = 0;
}
FAKE_API void fake_set_version(uint32_t version) { state().version = version; }
FAKE_API void fake_fail(const char *function, int code) {
  std::lock_guard<std::mutex> lock(state().hip.device.mutex);
  state().hip.device.faults[function] = code;
}
FAKE_API void fake_hang(const char *function, uint64_t ns) {
  std::lock_guard<std::mutex> lock(state().hip.device.mutex);
  state().hip.device.hangs[function] = ns;
}
FAKE_API void fake_hold(const char *, int) {} // several tools may register
FAKE_API int rocprofiler_is_initialized(int *status);
FAKE_API int rocprofiler_force_configure(abi::Configure configure);

/// As Kineto does (RocprofLogger.cpp): register where no tool is, and else take it for its own.
FAKE_API void fake_profiler_begin(int) {
  int status = 0;
  rocprofiler_is_initialized(&status);
  if (status == 0) {
    rocprofiler_force_configure(
        [](uint32_t, const char *, uint32_t, abi::ClientId *) -> abi::ConfigureResult * {
          return nullptr;
        });
    state().has_profiler = true;
  }
}
FAKE_API void fake_profiler_end() {}
FAKE_API void fake_start_runtime() {
  state().is_locked = true;
}
FAKE_API void fake_dispatch(const char *kernel, uint64_t ns) {
  state().hip.dispatchAlone(kernel, ns);
}
FAKE_API void fake_set_next_correlation(uint32_t id) { state().hip.next_correlation = id; }
FAKE_API void fake_set_buffer_records(uint64_t most) { state().most_records = most; }
FAKE_API void fake_drop(uint64_t records) { state().hip.device.drop_next = records; }
FAKE_API void fake_set_device(uint32_t device) { fake::t_device = device % fake::kDevices; }
FAKE_API void fake_set_lazy_loading(int is_lazy) { state().hip.device.is_lazy = is_lazy != 0; }
FAKE_API int fake_set_launch_function(const char *name) {
  return state().hip.setLaunchFunction(name);
}
FAKE_API void fake_launch(const char *kernel, uint32_t stream, uint64_t ns) {
  state().hip.launch(kernel, stream, ns);
}
FAKE_API void fake_launch_many(const char *kernel, uint32_t stream, uint64_t ns, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    state().hip.launch(kernel, stream, ns);
  }
}
FAKE_API void fake_copy(const char *direction, uint64_t bytes, uint64_t ns, int is_blocking) {
  state().hip.copy(direction, bytes, ns, is_blocking != 0);
}
FAKE_API int fake_set_memory(const char *kind) { return state().hip.setMemory(kind); }
FAKE_API void fake_prefetch(uint64_t) { state().hip.prefetch(); }
FAKE_API void fake_allocate(uint64_t bytes, int is_host) {
  state().hip.allocate(bytes, is_host != 0);
}
FAKE_API void fake_range_push(const char *message) { tellRange(abi::kMarkerRangePush, message); }
FAKE_API void fake_range_pop() { tellRange(abi::kMarkerRangePop, nullptr); }

#include "hip_scenario.h"
FAKE_API uint64_t fake_walk_held() {
  uint64_t sum = 0; // so that each record is read
  std::lock_guard<std::mutex> lock(state().mutex);
  for (const abi::RecordHeader *header : state().records.headers()) {
    sum += static_cast<const abi::KernelDispatch *>(header->payload)->end;
  }
  return sum;
}
FAKE_API void fake_unknown_records(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    keep({4711, std::vector<uint8_t>(64)});
  }
}
FAKE_API void fake_bad_times(int has_start) {
  Work work;
  work.name = state().hip.device.intern("unfinished");
  {
    fake::HipDevice::Scope call(state().hip, "hipLaunchKernel");
    askForNumber(work);
  }
  work.start_ns = has_start ? fake::nowNs() : 0;
  work.end_ns = 0;
  ++state().hip.device.launched;
  deliver({work});
}
FAKE_API uint64_t fake_count(const char *name) {
  fake::Device &device = state().hip.device;
  std::string what = name;
  if (what == "launched") {
    return device.launched;
  }
  if (what == "delivered") {
    return device.delivered;
  }
  if (what == "dropped") {
    return device.dropped;
  }
  if (what == "callbacks") {
    return device.callbacks;
  }
  return what == "buffers_out" || what == "subscribed" || what == "services" ? 0 : UINT64_MAX;
}
