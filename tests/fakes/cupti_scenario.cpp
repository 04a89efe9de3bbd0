// The test's side of the fake CUPTI; control.h says what each function does.
#include <cstring>

#include "control.h"
#include "cupti_device.h"
#include "cupti_stalls.h"

using namespace fake::cupti;
using fake::What;
using fake::Work;

FAKE_API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                        abi::Activity **record);
FAKE_API int cuptiActivityFlushAll(uint32_t flags);

namespace {

constexpr useconds_t kLoadingUs = 50; // of a kernel's code

void synchronize(uint64_t ns) {
  Call call(kCtxSynchronize);
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().broken_captures += state().capturing.size();
  }
  usleep(static_cast<useconds_t>(ns / 1000));
}

/// What the first launch of a kernel does. A capture allows no wait, also if it begins meanwhile.
void loadCode() {
  bool is_capturing = false;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    is_capturing = !state().capturing.empty();
  }
  if (!is_capturing) {
    Call call(kCtxSynchronize);
  }
  fake_load_module();
  fake_copy("HtoD", fake::kCodeBytes, fake::kCodeCopyNs, 1);
}

} // namespace

FAKE_API void fake_reset() {
  State &s = state();
  s.device.reset();
  t_memory = 0;
  fake::t_context = 0;
  s.dropped_told = 0;
  fake::resetStalls();
  resetLocks();
  resetProfiler();
  s.clock = nullptr;
  std::lock_guard<std::mutex> lock(s.mutex);
  s.sizes = firstSizes();
  s.subscription = nullptr;
  s.holder.clear();
  s.is_holder_sharing = false;
  s.kinds.clear();
  s.callbacks.clear();
  s.requested = nullptr;
  s.completed = nullptr;
  s.requested_v2 = nullptr;
  s.completed_v2 = nullptr;
  s.buffers.clear();
  s.held.clear();
  s.is_holding = false;
  s.is_incomplete = false;
  s.most_records = 0;
  s.buffers_out = 0;
  s.capturing.clear();
  s.bodies.clear();
  s.renumbered.clear();
  s.broken_captures = 0;
  s.device_pool_limit = kDevicePoolLimit;
  s.next_correlation = 1;
}

FAKE_API void fake_set_version(uint32_t version) {
  state().sizes = sizesOf(version);
}
FAKE_API void fake_fail(const char *function, int code) {
  std::lock_guard<std::mutex> lock(state().device.mutex);
  state().device.faults[function] = code;
  state().device.has_faults = true;
}
FAKE_API void fake_hang(const char *function, uint64_t ns) {
  std::lock_guard<std::mutex> lock(state().device.mutex);
  state().device.hangs[function] = ns;
  state().device.has_faults = true;
}
FAKE_API void fake_hold(const char *tool, int is_sharing) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().holder = tool;
  state().is_holder_sharing = is_sharing != 0;
}
FAKE_API void fake_start_runtime() {}
FAKE_API void fake_set_buffer_records(uint64_t most) { state().most_records = most; }
FAKE_API void fake_range_push(const char *) {} // NVTX ranges do not come through CUPTI alone
FAKE_API void fake_range_pop() {}
FAKE_API void fake_set_next_correlation(uint32_t id) { state().next_correlation = id; }
FAKE_API void fake_drop(uint64_t records) { state().device.drop_next = records; }

FAKE_API void fake_set_lazy_loading(int is_lazy) { state().device.is_lazy = is_lazy != 0; }
FAKE_API void fake_set_context(uint32_t number) { fake::t_context = number; }
FAKE_API void fake_set_device(uint32_t device) { fake::t_device = device % fake::kDevices; }
FAKE_API void fake_launch(const char *kernel, uint32_t stream, uint64_t ns) {
  State &s = state();
  Work work;
  work.name = s.device.intern(kernel);
  work.stream = stream;
  Call call(t_launch_function);
  if (s.device.is_lazy && s.device.mustLoad(kernel)) {
    loadCode();
  }
  if (s.device.has_faults && (call.result = s.device.fault("cuLaunchKernel")) != 0) {
    return;
  }
  if (becomesNode(work, ns)) {
    return;
  }
  work.correlation = call.correlation;
  s.device.schedule(work, ns);
}

FAKE_API int fake_set_launch_function(const char *name) {
  uint32_t id = idOfCall(name);
  t_launch_function = id ? id : t_launch_function;
  return id != 0;
}
FAKE_API void fake_host_function() { Call call(idOfCall("cuLaunchHostFunc")); }
FAKE_API void fake_launch_many(const char *kernel, uint32_t stream, uint64_t ns, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    fake_launch(kernel, stream, ns);
  }
}

FAKE_API int fake_set_memory(const char *kind) {
  static const std::map<std::string, uint8_t> kinds = {{"", 0},
                                                       {"pageable", abi::kMemoryPageable},
                                                       {"pinned", abi::kMemoryPinned},
                                                       {"managed", abi::kMemoryManaged}};
  auto found = kinds.find(kind);
  t_memory = found == kinds.end() ? t_memory : found->second;
  return found != kinds.end();
}
FAKE_API void fake_prefetch(uint64_t) { Call call(idOfCall("cuMemPrefetchAsync_v2")); }
FAKE_API void fake_copy(const char *direction, uint64_t bytes, uint64_t ns, int is_blocking) {
  Work work;
  work.what = What::kCopy;
  work.name = state().device.intern(direction);
  work.bytes = bytes;
  work.memory = t_memory;
  uint32_t id = copyKind(direction) == 10  ? 319
                : copyKind(direction) == 2 ? (is_blocking ? 278 : 279)
                                           : (is_blocking ? 276 : 277);
  abi::SizedParameters parameters{0, 0, bytes};
  Call call(id, &parameters);
  if (state().device.has_faults && (call.result = state().device.fault("cuMemcpy")) != 0) {
    return;
  }
  if (bytes == 0) { // leaves no record (seen with CUDA 13.0)
    return;
  }
  work.correlation = call.correlation;
  state().device.schedule(work, ns);
  if (is_blocking) {
    usleep(static_cast<useconds_t>(ns / 1000));
  }
}

FAKE_API void fake_set_shape(uint32_t grid, uint32_t block) {
  fake::t_grid = grid;
  fake::t_block = block;
}
FAKE_API void fake_memset(uint64_t bytes, uint64_t ns) {
  Work work;
  work.what = What::kMemset;
  work.bytes = bytes;
  Call call(kMemset);
  work.correlation = call.correlation;
  state().device.schedule(work, ns);
}

FAKE_API void fake_synchronize(uint64_t ns) { synchronize(ns); }

FAKE_API void fake_deliver(int seed) { deliver(state().device.takePending(seed)); }

FAKE_API void fake_deliver_on_threads(int seed, uint32_t threads) {
  fake::onThreads(state().device.takePending(seed), threads, deliver);
}

FAKE_API void fake_hold_buffers(int is_holding) {
  std::vector<Buffer> held;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().is_holding = is_holding != 0;
    if (!is_holding) {
      held.swap(state().held);
    }
  }
  for (const Buffer &buffer : held) {
    complete(buffer);
  }
}

FAKE_API uint64_t fake_walk_held() {
  std::vector<Buffer> held;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    held = state().held;
  }
  uint64_t sum = 0; // so that each record is read
  for (const Buffer &buffer : held) {
    abi::Activity *record = nullptr;
    while (cuptiActivityGetNextRecord(buffer.data, buffer.used, &record) == abi::kSuccess) {
      sum += reinterpret_cast<abi::Kernel *>(record)->end;
    }
  }
  return sum;
}

FAKE_API void fake_unknown_records(uint64_t count) {
  constexpr uint32_t kNoSuchKind = 4711;
  std::vector<uint8_t> record(sizeOf(kNoSuchKind));
  std::memcpy(record.data(), &kNoSuchKind, sizeof kNoSuchKind);
  Buffer buffer = checkOut();
  for (uint64_t i = 0; i < count; ++i) {
    emit(&buffer, record);
  }
  checkIn(buffer);
}

FAKE_API void fake_bad_times(int has_start) {
  // A record that is not complete: CUPTI hands such over when a flush is forced.
  Work work;
  work.name = state().device.intern("unfinished");
  Call call(kLaunchKernel);
  work.correlation = call.correlation;
  work.start_ns = has_start ? fake::nowNs() : 0;
  work.end_ns = 0;
  ++state().device.launched;
  deliver({work});
}

FAKE_API void fake_take_over() {
  static auto *const mine = new std::vector<std::vector<uint8_t>>(); // the other tool's buffers
  cuptiActivityFlushAll(0);
  std::lock_guard<std::mutex> lock(state().mutex);
  constexpr size_t kOffset = 64; // so that no one else can free it
  state().replaced_requested = state().requested;
  state().replaced_completed = state().completed;
  state().requested = [](uint8_t **buffer, size_t *bytes, size_t *most) {
    mine->emplace_back((1u << 16) + kOffset);
    *buffer = mine->back().data() + kOffset;
    *bytes = 1u << 16;
    *most = 0;
  };
  state().completed = [](void *, uint32_t, uint8_t *, size_t, size_t) {};
}

FAKE_API void fake_give_back() {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().requested = state().replaced_requested;
  state().completed = state().replaced_completed;
}

FAKE_API void fake_hold_incomplete(int is_incomplete) {
  state().is_incomplete = is_incomplete != 0;
}

FAKE_API void fake_create_context() {
  Call call(kCtxCreate, nullptr, /*is_locked=*/false);
  tellOfContext(abi::kResourceContextCreated);
  call.lock();
}

FAKE_API void fake_destroy_context() {
  Call call(kCtxDestroy, nullptr, /*is_locked=*/false);
  tellOfContext(abi::kResourceContextDestroy);
  call.lock();
  fake::stallContextGone(currentContext());
}

FAKE_API void fake_get_function(const char *kernel) {
  Call call(kKernelGetFunction);
  if (state().device.mustLoad(kernel)) {
    usleep(kLoadingUs);
    touchCuptiLock();
    fake_load_module();
  }
}

FAKE_API void fake_call_without_callback(uint64_t ns) {
  DriverLock lock(DriverLock::For::kReading);
  usleep(static_cast<useconds_t>(ns / 1000));
}

FAKE_API uint64_t fake_count(const char *name) {
  State &s = state();
  std::string what = name;
  if (what.rfind("profiler_", 0) == 0) {
    return profilerCount(what);
  }
  if (what == "launched") {
    return s.device.launched;
  }
  if (what == "delivered") {
    return s.device.delivered;
  }
  if (what == "dropped") {
    return s.device.dropped;
  }
  if (what == "callbacks") {
    return s.device.callbacks;
  }
  if (what == "misuses") {
    return fake::stallMisuses() + concurrentClientCalls() + s.broken_captures;
  }
  if (what == "left_enabled") {
    return fake::contextsLeftEnabled();
  }
  if (what == "sampled") {
    return fake::sampledContexts();
  }
  if (what == "hanging") {
    return s.device.hanging;
  }
  if (what == "device_pool_limit") {
    return s.device_pool_limit;
  }
  if (what == "buffers_out") {
    return s.buffers_out;
  }
  size_t sampled = fake::sampledContexts();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (what == "subscribed") {
    return s.subscription ? 1 : 0;
  }
  if (what == "services") {
    return s.kinds.size() + s.callbacks.size() + sampled;
  }
  return UINT64_MAX;
}
