// A stand-in for librocprofiler-sdk.so.1 with the true binary interface of 1.x: services are declared
// once, launches ask the tool for a number, records come in a buffer.
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "abi/rocprofiler.h"
#include "hip_device.h"

namespace abi = deepcontext::abi::rocprofiler;
using fake::What;
using fake::Work;

namespace {

// Operations of the HIP run-time domain, numbered as this fake pleases: tools go by name.
constexpr const char *kFunctions[] = {
    "hipApiName",          "hipLaunchKernel",      "hipMemcpy",          "hipMemcpyAsync",
    "hipMemsetAsync",      "hipDeviceSynchronize", "hipStreamSynchronize", "hipStreamBeginCapture",
    "hipStreamEndCapture", "hipGraphInstantiate",  "hipGraphLaunch",     "hipGraphExecDestroy",
    "hipGraphDestroy",     "hipMalloc",            "hipHostMalloc",     "hipGetDevice"};
constexpr uint64_t kAgent = 0x77; // of the first GPU; the others follow
constexpr uint64_t kUuid = 0xA100000000000000;
constexpr uint64_t kCpu = 0x11;

struct Tracing {
  uint32_t kind;
  std::set<int32_t> operations;
  abi::TracingCallback callback;
  void *user;
};

struct Context {
  bool is_started = false;
  std::vector<Tracing> tracings;
  std::set<uint32_t> buffered; // kinds
  std::set<uint32_t> requests;
  abi::ExternalCallback external = nullptr;
  void *external_user = nullptr;
};

struct Record {
  uint32_t kind;
  std::vector<uint8_t> bytes;
};

/// Records as the library keeps them: one behind the other, with headers that point to them.
class Buffer {
public:
  void put(const Record &record) {
    if (chunks_.empty() || chunks_.back().size() + record.bytes.size() > kChunkBytes) {
      chunks_.emplace_back();
      chunks_.back().reserve(kChunkBytes);
    }
    std::vector<uint8_t> &chunk = chunks_.back();
    uint8_t *payload = chunk.data() + chunk.size(); // stays: the chunk never grows
    chunk.insert(chunk.end(), record.bytes.begin(), record.bytes.end());
    headers_.push_back({abi::kCategoryTracing, record.kind, payload});
    pointers_.push_back(&headers_.back());
  }
  std::vector<abi::RecordHeader *> &headers() { return pointers_; }
  size_t size() const { return pointers_.size(); }

private:
  static constexpr size_t kChunkBytes = 4u << 20;
  std::vector<std::vector<uint8_t>> chunks_;
  std::deque<abi::RecordHeader> headers_;
  std::vector<abi::RecordHeader *> pointers_;
};

struct State {
  fake::HipDevice hip;
  std::mutex mutex;
  uint32_t version = 10201;
  std::vector<Context> contexts;
  abi::BufferCallback filled = nullptr;
  void *filled_user = nullptr;
  Buffer records;
  std::atomic<size_t> most_records{10'000};
  bool is_locked = false;
  bool is_holding = false;
  uint64_t dropped_untold = 0;
  std::map<std::string, uint64_t> kernels;
  std::atomic<uint64_t> next_dispatch{1};
};

State &state();

int operationOf(const char *function) {
  for (int i = 0; i < static_cast<int>(std::size(kFunctions)); ++i) {
    if (std::strcmp(kFunctions[i], function) == 0) {
      return i;
    }
  }
  return -1;
}

/// Tracing callbacks of a kind and operation in started contexts.
std::vector<Tracing> listeners(uint32_t kind, int32_t operation) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  std::vector<Tracing> found;
  for (const Context &context : s.contexts) {
    for (const Tracing &tracing : context.tracings) {
      if (context.is_started && tracing.kind == kind &&
          (tracing.operations.empty() || tracing.operations.count(operation))) {
        found.push_back(tracing);
      }
    }
  }
  return found;
}

void tellCall(fake::HipCall &call, bool is_enter) {
  int32_t operation = operationOf(call.function);
  for (const Tracing &tracing : listeners(abi::kCallbackHipRuntime, operation)) {
    abi::HipCall payload{};
    payload.size = sizeof payload;
    std::memcpy(payload.words, call.arguments, sizeof call.arguments);
    abi::CallbackRecord record{};
    record.correlation.internal = call.correlation;
    record.kind = abi::kCallbackHipRuntime;
    record.operation = operation;
    record.phase = is_enter ? uint32_t{abi::kPhaseEnter} : uint32_t{abi::kPhaseExit};
    record.payload = &payload;
    abi::UserData data;
    data.value = call.slot;
    ++state().hip.device.callbacks;
    tracing.callback(record, &data, tracing.user);
    call.slot = data.value;
  }
}

/// The kernel's number; its first use loads its code.
uint64_t kernelId(const char *name) {
  State &s = state();
  uint64_t id = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    auto known = s.kernels.find(name);
    if (known != s.kernels.end()) {
      return known->second;
    }
    id = s.kernels.size() + 1;
    s.kernels.emplace(name, id);
  }
  std::string symbol_name = std::string(name) + ".kd";
  abi::KernelSymbol symbol{};
  symbol.size = sizeof symbol;
  symbol.kernel = id;
  symbol.name = symbol_name.c_str();
  symbol.vector_registers = 32;
  for (const Tracing &tracing :
       listeners(abi::kCallbackCodeObject, abi::kCodeObjectKernelSymbol)) {
    abi::CallbackRecord record{};
    record.kind = abi::kCallbackCodeObject;
    record.operation = abi::kCodeObjectKernelSymbol;
    record.phase = abi::kPhaseEnter;
    record.payload = &symbol;
    abi::UserData data{};
    tracing.callback(record, &data, tracing.user);
  }
  return id;
}

void askForNumber(Work &work) {
  State &s = state();
  bool is_copy = work.what == What::kCopy;
  uint32_t request = is_copy ? uint32_t{abi::kRequestMemoryCopy}
                             : uint32_t{abi::kRequestKernelDispatch};
  if (!is_copy) {
    kernelId(work.name);
  }
  abi::ExternalCallback external = nullptr;
  void *user = nullptr;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    for (const Context &context : s.contexts) {
      if (context.is_started && context.requests.count(request)) {
        external = context.external;
        user = context.external_user;
      }
    }
  }
  if (external) {
    abi::UserData number{};
    ++s.hip.device.callbacks;
    external(1, abi::Id{1}, request, 1, work.correlation, &number, user);
    work.external = number.value;
  }
}

/// HIP's allocation as its lower layer sees it.
void tellAllocation(uint64_t bytes, bool is_host) {
  for (const Tracing &tracing : listeners(abi::kCallbackAllocation, abi::kAllocate)) {
    for (uint32_t phase : {uint32_t{abi::kPhaseEnter}, uint32_t{abi::kPhaseExit}}) {
      abi::AllocationCall payload{};
      payload.size = sizeof payload;
      payload.agent = {is_host ? kCpu : kAgent + fake::t_device};
      payload.bytes = bytes;
      abi::CallbackRecord record{};
      record.kind = abi::kCallbackAllocation;
      record.operation = abi::kAllocate;
      record.phase = phase;
      record.payload = &payload;
      abi::UserData data{};
      tracing.callback(record, &data, tracing.user);
    }
  }
}

State &state() {
  static State *const state = [] {
    auto *made = new State();
    made->hip.tell = tellCall;
    made->hip.about_to_dispatch = askForNumber;
    made->hip.about_to_allocate = tellAllocation;
    return made;
  }();
  return *state;
}

#define FAIL_IF_ASKED(function)                                                                    \
  do {                                                                                             \
    if (int code = state().hip.device.fault(function)) {                                           \
      return code;                                                                                 \
    }                                                                                              \
  } while (0)

Record encode(const Work &work) {
  Record made;
  if (work.what == What::kCopy) {
    static const std::map<std::string, uint32_t> directions = {
        {"HtoH", abi::kCopyHostToHost},
        {"HtoD", abi::kCopyHostToDevice},
        {"DtoH", abi::kCopyDeviceToHost},
        {"DtoD", abi::kCopyDeviceToDevice},
        {"PtoP", abi::kCopyDeviceToDevice}};
    abi::MemoryCopy record{};
    record.size = sizeof record;
    record.kind = made.kind = abi::kBufferMemoryCopy;
    record.operation = directions.at(work.name);
    record.correlation.internal = work.correlation;
    record.correlation.external.value = work.external;
    record.start = work.start_ns;
    record.end = work.end_ns;
    bool is_from_host = work.name[0] == 'H', is_to_host = work.name[3] == 'H';
    record.source = {is_from_host ? kCpu : kAgent + work.device};
    record.target = {is_to_host ? kCpu : kAgent + work.device};
    record.bytes = work.bytes;
    made.bytes.assign(reinterpret_cast<uint8_t *>(&record),
                      reinterpret_cast<uint8_t *>(&record) + sizeof record);
    return made;
  }
  abi::KernelDispatch record{};
  record.size = sizeof record;
  record.kind = made.kind = abi::kBufferKernelDispatch;
  record.operation = 2;
  record.correlation.internal = work.correlation;
  record.correlation.external.value = work.external;
  record.start = work.start_ns;
  record.end = work.end_ns;
  record.info.size = sizeof record.info;
  record.info.agent = {kAgent + work.device};
  record.info.queue = {work.stream};
  record.info.kernel = kernelId(work.name);
  record.info.dispatch = state().next_dispatch++;
  record.info.group_bytes = 1024;
  record.info.workgroup[0] = work.block;
  record.info.grid[0] = work.block * work.grid;
  for (int axis = 1; axis < 3; ++axis) {
    record.info.workgroup[axis] = record.info.grid[axis] = 1;
  }
  made.bytes.assign(reinterpret_cast<uint8_t *>(&record),
                    reinterpret_cast<uint8_t *>(&record) + sizeof record);
  return made;
}

/// Call the tool with what is in the buffer.
void handOver() {
  State &s = state();
  Buffer records;
  uint64_t dropped = 0;
  abi::BufferCallback filled;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    std::swap(records, s.records);
    std::swap(dropped, s.dropped_untold);
    filled = s.filled;
  }
  if (!filled || (records.size() == 0 && dropped == 0)) {
    return;
  }
  filled(abi::Id{1}, abi::Id{1}, records.headers().data(), records.size(), s.filled_user, dropped);
}

void keep(const Record &record) {
  State &s = state();
  bool is_full = false;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.records.put(record);
    is_full = s.records.size() >= s.most_records && !s.is_holding;
  }
  if (is_full) {
    handOver();
  }
}

void deliver(const std::vector<Work> &works) {
  State &s = state();
  for (const Work &work : works) {
    if (fake::isToBeLost(s.hip.device)) {
      ++s.hip.device.dropped;
      std::lock_guard<std::mutex> lock(s.mutex);
      ++s.dropped_untold;
      continue;
    }
    ++s.hip.device.delivered;
    keep(encode(work));
  }
}

} // namespace

// -- the rocprofiler-sdk interface

FAKE_API int rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
  FAIL_IF_ASKED("rocprofiler_get_version");
  *major = state().version / 10000;
  *minor = state().version / 100 % 100;
  *patch = state().version % 100;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_get_timestamp(uint64_t *now) {
  *now = fake::nowNs();
  return abi::kSuccess;
}

FAKE_API const char *rocprofiler_get_status_string(int status) {
  switch (status) {
  case abi::kErrorConfigurationLocked:
    return "Configuration request occurred outside of valid rocprofiler configuration period";
  case abi::kErrorPermissionDenied:
    return "Permission denied";
  default:
    return "fake error";
  }
}

FAKE_API int rocprofiler_force_configure(abi::Configure configure) {
  FAIL_IF_ASKED("rocprofiler_force_configure");
  State &s = state();
  if (s.is_locked) {
    return abi::kErrorConfigurationLocked;
  }
  abi::ClientId client{sizeof client, nullptr, 1};
  abi::ConfigureResult *result = configure(s.version, "fake", 0, &client);
  if (result && result->initialize && result->initialize([](abi::ClientId) {}, result->data) != 0) {
    s.contexts.clear();
  } else {
    s.is_locked = true;
  }
  return abi::kSuccess;
}

FAKE_API int rocprofiler_create_context(abi::Id *context) {
  FAIL_IF_ASKED("rocprofiler_create_context");
  state().contexts.emplace_back();
  context->handle = state().contexts.size();
  return abi::kSuccess;
}

FAKE_API int rocprofiler_start_context(abi::Id context) {
  FAIL_IF_ASKED("rocprofiler_start_context");
  std::lock_guard<std::mutex> lock(state().mutex);
  state().contexts.at(context.handle - 1).is_started = true;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_context_is_valid(abi::Id context, int *is_valid) {
  *is_valid = context.handle > 0 && context.handle <= state().contexts.size();
  return abi::kSuccess;
}

FAKE_API int rocprofiler_create_buffer(abi::Id, size_t, size_t, uint32_t policy,
                                       abi::BufferCallback filled, void *user, abi::Id *buffer) {
  FAIL_IF_ASKED("rocprofiler_create_buffer");
  if (policy != abi::kPolicyLossless) {
    return 19;
  }
  state().filled = filled;
  state().filled_user = user;
  buffer->handle = 1;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_flush_buffer(abi::Id) {
  FAIL_IF_ASKED("rocprofiler_flush_buffer");
  handOver();
  return abi::kSuccess;
}

FAKE_API int rocprofiler_create_callback_thread(abi::Id *thread) {
  thread->handle = 1;
  return abi::kSuccess;
}
FAKE_API int rocprofiler_assign_callback_thread(abi::Id, abi::Id) { return abi::kSuccess; }

FAKE_API int rocprofiler_configure_buffer_tracing_service(abi::Id context, uint32_t kind,
                                                          const int32_t *, size_t, abi::Id) {
  FAIL_IF_ASKED("rocprofiler_configure_buffer_tracing_service:" + std::to_string(kind));
  state().contexts.at(context.handle - 1).buffered.insert(kind);
  return state().is_locked ? int{abi::kErrorConfigurationLocked} : int{abi::kSuccess};
}

FAKE_API int rocprofiler_configure_callback_tracing_service(abi::Id context, uint32_t kind,
                                                            const int32_t *operations, size_t count,
                                                            abi::TracingCallback callback,
                                                            void *user) {
  FAIL_IF_ASKED("rocprofiler_configure_callback_tracing_service:" + std::to_string(kind));
  state().contexts.at(context.handle - 1)
      .tracings.push_back({kind, {operations, operations + count}, callback, user});
  return state().is_locked ? int{abi::kErrorConfigurationLocked} : int{abi::kSuccess};
}

FAKE_API int rocprofiler_configure_external_correlation_id_request_service(
    abi::Id context, const uint32_t *kinds, size_t count, abi::ExternalCallback callback,
    void *user) {
  FAIL_IF_ASKED("rocprofiler_configure_external_correlation_id_request_service");
  Context &asked = state().contexts.at(context.handle - 1);
  asked.requests = {kinds, kinds + count};
  asked.external = callback;
  asked.external_user = user;
  return abi::kSuccess;
}

FAKE_API int rocprofiler_query_callback_tracing_kind_operation_name(uint32_t kind,
                                                                    int32_t operation,
                                                                    const char **name,
                                                                    uint64_t *length) {
  if (kind != abi::kCallbackHipRuntime || operation < 0 ||
      operation >= static_cast<int32_t>(std::size(kFunctions))) {
    return 5; // no such operation
  }
  *name = kFunctions[operation];
  *length = std::strlen(*name);
  return abi::kSuccess;
}

FAKE_API int rocprofiler_query_available_agents(uint32_t, abi::AgentsCallback callback, size_t,
                                                void *user) {
  std::vector<abi::Agent> agents(1 + fake::kDevices);
  std::vector<const void *> pointers;
  for (abi::Agent &agent : agents) {
    auto place = static_cast<int32_t>(&agent - agents.data());
    agent.size = sizeof agent;
    agent.id = {place == 0 ? kCpu : kAgent + static_cast<uint64_t>(place) - 1};
    agent.type = place == 0 ? int32_t{abi::kAgentCpu} : int32_t{abi::kAgentGpu};
    agent.type_ordinal = place == 0 ? 0 : place - 1;
    agent.uuid[0] = place == 0 ? 0 : kUuid + static_cast<uint64_t>(place) - 1;
    pointers.push_back(&agent);
  }
  return callback(abi::kAgentVersion, pointers.data(), pointers.size(), user);
}

/// A program's roctx range, as libroctx would tell about it.
static void tellRange(int32_t operation, const char *message) {
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

// -- the test's side; control.h says what each does

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
FAKE_API void fake_start_runtime() {
  state().is_locked = true;
}
FAKE_API void fake_set_next_correlation(uint32_t id) { state().hip.next_correlation = id; }
FAKE_API void fake_set_buffer_records(uint64_t most) { state().most_records = most; }
FAKE_API void fake_drop(uint64_t records) { state().hip.device.drop_next = records; }
FAKE_API void fake_set_device(uint32_t device) { fake::t_device = device % fake::kDevices; }
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
FAKE_API void fake_set_shape(uint32_t grid, uint32_t block) {
  fake::t_grid = grid;
  fake::t_block = block;
}
FAKE_API void fake_memset(uint64_t bytes, uint64_t ns) { state().hip.set(bytes, ns); }
FAKE_API void fake_allocate(uint64_t bytes, int is_host) {
  state().hip.allocate(bytes, is_host != 0);
}
FAKE_API void fake_synchronize(uint64_t ns) { state().hip.synchronize(ns); }
FAKE_API void fake_capture_begin(uint32_t stream) { state().hip.captureBegin(stream); }
FAKE_API uint32_t fake_capture_end(uint32_t stream) { return state().hip.captureEnd(stream); }
FAKE_API uint32_t fake_graph_instantiate(uint32_t graph) { return state().hip.instantiate(graph); }
FAKE_API void fake_graph_launch(uint32_t executable, uint32_t stream) {
  state().hip.replay(executable, stream);
}
FAKE_API void fake_graph_destroy(uint32_t graph) { state().hip.destroy(graph); }
FAKE_API void fake_range_push(const char *message) { tellRange(abi::kMarkerRangePush, message); }
FAKE_API void fake_range_pop() { tellRange(abi::kMarkerRangePop, nullptr); }

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
  askForNumber(work);
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
