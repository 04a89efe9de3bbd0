// A stand-in for libroctracer64.so.4 with the true binary interface of ROCm 6: callbacks per HIP
// function, records in a pool.
#include <cstring>
#include <memory>
#include <thread>

#include "abi/roctracer.h"
#include "hip_device.h"

namespace abi = deepcontext::abi::roctracer;
using fake::What;
using fake::Work;

namespace {

constexpr const char *kFunctions[] = {"hipLaunchKernel",
                                      "hipExtLaunchKernel",
                                      "hipModuleLaunchKernel",
                                      "hipExtModuleLaunchKernel",
                                      "hipLaunchCooperativeKernel",
                                      "hipModuleLaunchCooperativeKernel",
                                      "hipLaunchKernelExC",
                                      "hipDrvLaunchKernelEx",
                                      "hipMemcpy",
                                      "hipMemcpyAsync",
                                      "hipMemsetAsync",
                                      "hipDeviceSynchronize",
                                      "hipGraphLaunch",
                                      "hipStreamBeginCapture",
                                      "hipStreamEndCapture"};
constexpr const char *kCopyKinds[] = {"CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice",
                                      "CopyHostToHost"};

struct Callback {
  abi::ApiCallback function;
  void *user;
};

struct State {
  fake::HipDevice hip;
  std::mutex mutex;
  std::map<std::pair<uint32_t, uint32_t>, Callback> callbacks;
  abi::Properties pool{};
  bool has_pool = false;
  bool has_activity = false;
  std::vector<abi::Record> records; // in the pool
  std::atomic<size_t> most_records{10'000};
  bool is_holding = false;
  std::atomic<uint64_t> without_correlation{0}; // of the next records
};

State &state();

bool find(uint32_t domain, uint32_t id, Callback *callback) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  auto found = s.callbacks.find({domain, id});
  if (found == s.callbacks.end()) {
    return false;
  }
  *callback = found->second;
  return true;
}

void tellCall(fake::HipCall &call, bool is_enter) {
  for (uint32_t id = 0; id < std::size(kFunctions); ++id) {
    Callback callback;
    if (std::strcmp(kFunctions[id], call.function) != 0 ||
        !find(abi::kDomainHipApi, id, &callback)) {
      continue;
    }
    abi::HipCall data{};
    data.correlation = call.correlation;
    data.phase = is_enter ? uint32_t{abi::kPhaseEnter} : uint32_t{abi::kPhaseExit};
    data.graph_launch.executable = call.arguments[0];
    ++state().hip.device.callbacks;
    callback.function(abi::kDomainHipApi, id, &data, callback.user);
  }
}

State &state() {
  static State *const state = [] {
    auto *made = new State();
    made->hip.tell = tellCall;
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

abi::Record encode(const Work &work) {
  static const std::map<std::string, uint32_t> kinds = {
      {"HtoD", 0}, {"DtoH", 1}, {"DtoD", 2}, {"HtoH", 3}, {"PtoP", 2}};
  abi::Record record{};
  record.domain = abi::kDomainHipOps;
  record.op = work.what == What::kCopy ? uint32_t{abi::kOpCopy} : uint32_t{abi::kOpDispatch};
  std::atomic<uint64_t> &without = state().without_correlation;
  bool is_without = work.what == What::kKernel && without > 0;
  without -= is_without;
  record.correlation = is_without ? 0 : work.correlation;
  record.start = work.start_ns;
  record.end = work.end_ns;
  record.device = static_cast<int32_t>(work.device);
  record.queue = work.stream;
  if (work.what == What::kCopy) {
    record.kind = kinds.at(work.name);
    record.bytes = work.bytes;
  } else {
    record.kernel_name = work.name;
  }
  return record;
}

void handOver() {
  State &s = state();
  std::vector<abi::Record> records;
  abi::Properties pool;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    if (!s.has_pool) {
      s.records.clear();
      return;
    }
    records.swap(s.records);
    pool = s.pool;
  }
  if (!records.empty()) {
    pool.buffer_filled(reinterpret_cast<const char *>(records.data()),
                       reinterpret_cast<const char *>(records.data() + records.size()),
                       pool.buffer_user);
  }
}

void keep(const abi::Record &record) {
  State &s = state();
  bool is_full = false;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    if (!s.has_activity) {
      return;
    }
    s.records.push_back(record);
    is_full = s.records.size() >= s.most_records && !s.is_holding;
  }
  if (is_full) {
    handOver();
  }
}

void deliver(const std::vector<Work> &works) {
  fake::Device &device = state().hip.device;
  for (const Work &work : works) {
    if (fake::isToBeLost(device)) {
      ++device.dropped; // roctracer does not count what it loses
      --device.launched;
      continue;
    }
    ++device.delivered;
    keep(encode(work));
  }
}

} // namespace

// -- the roctracer interface

FAKE_API uint32_t roctracer_version_major() { return 4; }
FAKE_API uint32_t roctracer_version_minor() { return 1; }
FAKE_API const char *roctracer_error_string() { return "fake error"; }

FAKE_API const char *roctracer_op_string(uint32_t domain, uint32_t op, uint32_t kind) {
  bool is_copy = domain == abi::kDomainHipOps && op == abi::kOpCopy && kind < std::size(kCopyKinds);
  return is_copy ? kCopyKinds[kind] : "KernelExecution";
}

FAKE_API int roctracer_op_code(uint32_t domain, const char *name, uint32_t *op, uint32_t *kind) {
  FAIL_IF_ASKED("roctracer_op_code");
  for (uint32_t id = 0; id < std::size(kFunctions); ++id) {
    if (domain == abi::kDomainHipApi && std::strcmp(kFunctions[id], name) == 0) {
      *op = id;
      *kind = 0;
      return abi::kSuccess;
    }
  }
  return -3;
}

FAKE_API int roctracer_enable_op_callback(uint32_t domain, uint32_t op, abi::ApiCallback callback,
                                          void *user) {
  FAIL_IF_ASKED("roctracer_enable_op_callback");
  std::lock_guard<std::mutex> lock(state().mutex);
  state().callbacks[{domain, op}] = {callback, user};
  return abi::kSuccess;
}
FAKE_API int roctracer_disable_op_callback(uint32_t domain, uint32_t op) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().callbacks.erase({domain, op});
  return abi::kSuccess;
}

FAKE_API int roctracer_open_pool_expl(const abi::Properties *properties, void **pool) {
  if (int code = fake::faultOfEnvironment("roctracer_open_pool_expl")) {
    return code;
  }
  FAIL_IF_ASKED("roctracer_open_pool_expl");
  std::lock_guard<std::mutex> lock(state().mutex);
  state().pool = *properties;
  state().has_pool = true;
  *pool = &state().pool;
  return abi::kSuccess;
}
FAKE_API int roctracer_close_pool_expl(void *) {
  handOver();
  std::lock_guard<std::mutex> lock(state().mutex);
  state().has_pool = false;
  return abi::kSuccess;
}
FAKE_API int roctracer_enable_domain_activity_expl(uint32_t, void *) {
  FAIL_IF_ASKED("roctracer_enable_domain_activity_expl");
  std::lock_guard<std::mutex> lock(state().mutex);
  state().has_activity = true;
  return abi::kSuccess;
}
FAKE_API int roctracer_disable_domain_activity(uint32_t) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().has_activity = false;
  return abi::kSuccess;
}
FAKE_API int roctracer_flush_activity_expl(void *) {
  FAIL_IF_ASKED("roctracer_flush_activity_expl");
  handOver();
  return abi::kSuccess;
}
FAKE_API int roctracer_next_record(const abi::Record *record, const abi::Record **next) {
  FAIL_IF_ASKED("roctracer_next_record");
  *next = record + 1;
  return abi::kSuccess;
}
FAKE_API int roctracer_get_timestamp(uint64_t *now) {
  *now = fake::nowNs();
  return abi::kSuccess;
}

static void tellRange(uint32_t id, const char *message) {
  Callback callback;
  if (find(abi::kDomainRoctx, id, &callback)) {
    abi::RoctxCall data{message};
    callback.function(abi::kDomainRoctx, id, &data, callback.user);
  }
}

// -- the test's side; control.h says what each does

FAKE_API void fake_reset() {
  State &s = state();
  s.hip.reset();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.callbacks.clear();
  s.has_pool = s.has_activity = s.is_holding = false;
  s.records.clear();
  s.most_records = 10'000;
}
FAKE_API void fake_set_version(uint32_t) {}
FAKE_API void fake_fail(const char *function, int code) {
  std::lock_guard<std::mutex> lock(state().hip.device.mutex);
  state().hip.device.faults[function] = code;
}
FAKE_API void fake_hang(const char *function, uint64_t ns) {
  std::lock_guard<std::mutex> lock(state().hip.device.mutex);
  state().hip.device.hangs[function] = ns;
}
FAKE_API void fake_hold(const char *, int) {}
FAKE_API void fake_start_runtime() {}
FAKE_API void fake_set_next_correlation(uint32_t id) { state().hip.next_correlation = id; }
FAKE_API void fake_set_buffer_records(uint64_t most) { state().most_records = most; }
FAKE_API void fake_lose_correlation(uint64_t launches) { state().without_correlation = launches; }
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
FAKE_API void fake_range_push(const char *message) { tellRange(abi::kRoctxRangePush, message); }
FAKE_API void fake_range_pop() { tellRange(abi::kRoctxRangePop, nullptr); }
#include "hip_scenario.h"
FAKE_API uint64_t fake_walk_held() {
  uint64_t sum = 0; // so that each record is read
  std::lock_guard<std::mutex> lock(state().mutex);
  for (const abi::Record &record : state().records) {
    sum += record.end;
  }
  return sum;
}
FAKE_API void fake_unknown_records(uint64_t count) {
  abi::Record record{};
  record.domain = 4711;
  for (uint64_t i = 0; i < count; ++i) {
    keep(record);
  }
}
FAKE_API void fake_bad_times(int has_start) {
  fake::HipCall call{"hipLaunchKernel", state().hip.next_correlation.fetch_add(1)};
  tellCall(call, true);
  tellCall(call, false);
  Work work;
  work.name = state().hip.device.intern("unfinished");
  work.correlation = call.correlation;
  work.start_ns = has_start ? fake::nowNs() : 0;
  work.end_ns = 0;
  ++state().hip.device.launched;
  deliver({work});
}
FAKE_API uint64_t fake_count(const char *name) {
  State &s = state();
  std::string what = name;
  if (what == "launched") {
    return s.hip.device.launched;
  }
  if (what == "delivered") {
    return s.hip.device.delivered;
  }
  if (what == "dropped") {
    return s.hip.device.dropped;
  }
  if (what == "callbacks") {
    return s.hip.device.callbacks;
  }
  std::lock_guard<std::mutex> lock(s.mutex);
  if (what == "subscribed") {
    return s.has_pool;
  }
  if (what == "services") {
    return s.callbacks.size() + s.has_activity;
  }
  return what == "buffers_out" ? 0 : UINT64_MAX;
}
