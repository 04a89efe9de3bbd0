// What the fake rocprofiler-sdk tells its tool: callbacks on the launching thread, records in a
// buffer.
#include <cstring>

#include "rocprofiler_device.h"

namespace fake::rocprofiler {

namespace {

int operationOf(const char *function) {
  for (int i = 0; i < static_cast<int>(std::size(kFunctions)); ++i) {
    if (std::strcmp(kFunctions[i], function) == 0) {
      return i;
    }
  }
  return -1;
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
    uint32_t peer = (work.device + 1) % fake::kDevices;
    record.target = {is_to_host ? kCpu : kAgent + (work.name[0] == 'P' ? peer : work.device)};
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

} // namespace

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

} // namespace fake::rocprofiler
