// A stand-in for libcupti.so with the true binary interface: a subscriber's callbacks run on the
// launching thread, records come in the client's buffers, and every fault can be asked for.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "abi/cupti.h"
#include "control.h"
#include "cupti_stalls.h"
#include "device.h"

namespace abi = deepcontext::abi::cupti;
using fake::What;
using fake::Work;

namespace {

/// Record sizes of CUPTI's releases; native/abi/check prints them from the true headers.
struct Sizes {
  uint32_t version;
  size_t kernel, memcpy, memset;
};
constexpr Sizes kSizes[] = {{26, 208, 96, 88},     {28, 208, 96, 88},
                            {130001, 216, 96, 88},  {130101, 224, 96, 88},
                            {130200, 224, 96, 88}, {130300, 232, 96, 88},  {130401, 248, 112, 104},
                            {130500, 248, 112, 104}};
constexpr size_t kPeerBytes = 96, kOverheadBytes = 56;

struct CallName {
  uint32_t id;
  const char *name;
};
// Ids and names as libcupti 12.9 and 13.0 give them.
constexpr CallName kCalls[] = {{17, "cuCtxSynchronize"},       {126, "cuStreamSynchronize"},
                               {220, "cuMemsetD32Async"},      {276, "cuMemcpyHtoD_v2"},
                               {277, "cuMemcpyHtoDAsync_v2"},  {278, "cuMemcpyDtoH_v2"},
                               {279, "cuMemcpyDtoHAsync_v2"},  {281, "cuMemcpyDtoDAsync_v2"},
                               {307, "cuLaunchKernel"},        {514, "cuGraphLaunch"},
                               {497, "cuStreamEndCapture"},    {539, "cuStreamBeginCapture_v2"},
                               {652, "cuLaunchKernelEx"},      {319, "cuMemcpyPeerAsync"}};
constexpr uint32_t kLaunchKernel = 307, kGraphLaunch = 514, kMemset = 220, kCtxSynchronize = 17;
constexpr uint32_t kBeginCapture = 539, kEndCapture = 497;

void *const kContext = reinterpret_cast<void *>(0x1000); // the one of this device

struct Subscription {
  abi::Callback callback = nullptr;
  void *user = nullptr;
  bool is_second_family = false;
};

struct Buffer {
  uint8_t *data = nullptr;
  size_t bytes = 0;
  size_t used = 0;
  size_t most = 0;
  size_t records = 0;
};

struct State {
  fake::Device device;
  std::mutex mutex;
  Sizes sizes = kSizes[2];
  std::shared_ptr<Subscription> subscription;
  std::string holder; // another tool
  bool is_holder_sharing = false;
  std::set<uint32_t> kinds;
  std::set<std::pair<uint32_t, uint32_t>> callbacks;
  abi::BufferRequested requested = nullptr;
  abi::BufferCompleted completed = nullptr;
  abi::BufferRequestedV2 requested_v2 = nullptr;
  abi::BufferCompletedV2 completed_v2 = nullptr;
  std::map<std::thread::id, Buffer> buffers; // one a delivering thread
  std::atomic<uint32_t> next_correlation{1};
  std::map<uint32_t, uint32_t> capturing; // stream -> graph
  std::atomic<uint64_t> broken_captures{0}; // the context was waited for meanwhile
  std::atomic<uint64_t> buffers_out{0};
  std::atomic<uint64_t> most_records{0}; // in a buffer; 0 for as many as fit
  bool is_holding = false;
  std::vector<Buffer> held; // complete, and not handed back yet
};

State &state() {
  static State *const state = new State();
  return *state;
}

#define FAIL_IF_ASKED(function)                                                                    \
  do {                                                                                             \
    if (int code = state().device.fault(function)) {                                               \
      return code;                                                                                 \
    }                                                                                              \
  } while (0)

/// The subscriber, if it wants this callback.
std::shared_ptr<Subscription> listener(uint32_t domain, uint32_t id) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.callbacks.count({domain, id}) ? s.subscription : nullptr;
}

struct Call {
  uint32_t id;
  uint32_t correlation;
  uint64_t slot = 0; // the client's own, from enter to exit

  explicit Call(uint32_t id) : id(id), correlation(state().next_correlation.fetch_add(1)) {
    tell(abi::kSiteEnter);
  }
  ~Call() { tell(abi::kSiteExit); }

  void tell(uint32_t site) {
    auto subscription = listener(abi::kDomainDriver, id);
    if (!subscription) {
      return;
    }
    int result = 0;
    abi::CallbackData data{};
    data.site = site;
    data.function = "";
    data.return_value = &result;
    data.context = kContext;
    data.context_id = 1;
    data.correlation_data = &slot;
    data.correlation = correlation;
    ++state().device.callbacks;
    subscription->callback(subscription->user, abi::kDomainDriver, id, &data);
  }
};

void tellGraphNode(uint32_t id, uint32_t graph, uint64_t node, uint64_t original) {
  auto subscription = listener(abi::kDomainResource, id);
  if (!subscription) {
    return;
  }
  abi::GraphData data{};
  data.graph = reinterpret_cast<void *>(static_cast<uintptr_t>(graph));
  data.node = reinterpret_cast<void *>(static_cast<uintptr_t>(node));
  data.original_node = reinterpret_cast<void *>(static_cast<uintptr_t>(original));
  abi::ResourceData resource{};
  resource.context = kContext;
  resource.descriptor = &data;
  ++state().device.callbacks;
  subscription->callback(subscription->user, abi::kDomainResource, id, &resource);
}

} // namespace

namespace fake {

int faultOf(const char *function) { return state().device.fault(function); }
const char *sharedName(const char *name) { return state().device.intern(name); }

void tellModuleLoaded(uint32_t module, const char *cubin, size_t bytes) {
  auto subscription = listener(abi::kDomainResource, abi::kResourceModuleLoaded);
  if (!subscription) {
    return;
  }
  abi::ModuleData data{module, bytes, cubin};
  abi::ResourceData resource{};
  resource.context = kContext;
  resource.descriptor = &data;
  ++state().device.callbacks;
  subscription->callback(subscription->user, abi::kDomainResource, abi::kResourceModuleLoaded,
                         &resource);
}

} // namespace fake

namespace {

// -- records

uint8_t copyKind(const char *direction) {
  static const std::map<std::string, uint8_t> kinds = {{"HtoD", 1}, {"DtoH", 2},  {"DtoD", 8},
                                                       {"HtoH", 9}, {"PtoP", 10}};
  auto found = kinds.find(direction);
  return found == kinds.end() ? 0 : found->second;
}

size_t sizeOf(uint32_t kind) {
  const Sizes &sizes = state().sizes;
  switch (kind) {
  case abi::kKindKernel:
  case abi::kKindConcurrentKernel:
    return sizes.kernel;
  case abi::kKindMemcpy:
    return sizes.memcpy;
  case abi::kKindMemcpyPeer:
    return kPeerBytes;
  case abi::kKindMemset:
    return sizes.memset;
  case abi::kKindOverhead:
    return kOverheadBytes;
  default:
    return 64;
  }
}

template <typename Record> void fillTransfer(Record *record, const Work &work) {
  record->bytes = work.bytes;
  record->start = work.start_ns;
  record->end = work.end_ns;
  record->device = work.device;
  record->context = 1;
  record->stream = work.stream;
  record->correlation = static_cast<uint32_t>(work.correlation);
  record->graph_node = work.graph_node;
  record->graph = work.graph_exec;
}

std::vector<uint8_t> encode(const Work &work) {
  uint32_t kind = work.what == What::kKernel   ? uint32_t{abi::kKindConcurrentKernel}
                  : work.what == What::kMemset ? uint32_t{abi::kKindMemset}
                  : copyKind(work.name) == 10  ? uint32_t{abi::kKindMemcpyPeer}
                                               : uint32_t{abi::kKindMemcpy};
  std::vector<uint8_t> bytes(sizeOf(kind));
  std::memcpy(bytes.data(), &kind, sizeof kind);
  switch (kind) {
  case abi::kKindConcurrentKernel: {
    auto *record = reinterpret_cast<abi::Kernel *>(bytes.data());
    record->start = work.start_ns;
    record->end = record->completed = work.end_ns;
    record->device = work.device;
    record->context = 1;
    record->stream = work.stream;
    record->grid[0] = static_cast<int32_t>(work.grid);
    record->grid[1] = record->grid[2] = record->block[1] = record->block[2] = 1;
    record->block[0] = static_cast<int32_t>(work.block);
    record->registers_per_thread = 32;
    record->static_shared_bytes = 1024;
    record->correlation = static_cast<uint32_t>(work.correlation);
    record->name = work.name;
    record->graph_node = work.graph_node;
    record->graph = work.graph_exec;
    if (state().sizes.version >= abi::kVersionSourceGraphNode) {
      std::memcpy(bytes.data() + abi::kKernelSourceGraphNode, &work.source_node,
                  sizeof work.source_node);
    }
    break;
  }
  case abi::kKindMemcpy: {
    auto *record = reinterpret_cast<abi::Memcpy *>(bytes.data());
    fillTransfer(record, work);
    record->copy_kind = copyKind(work.name);
    break;
  }
  case abi::kKindMemcpyPeer:
    fillTransfer(reinterpret_cast<abi::MemcpyPeer *>(bytes.data()), work);
    break;
  case abi::kKindMemset:
    fillTransfer(reinterpret_cast<abi::Memset *>(bytes.data()), work);
    break;
  }
  return bytes;
}

/// Hand a buffer back to the client, or keep it while a test wants that.
void complete(const Buffer &buffer) {
  State &s = state();
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    if (s.is_holding) {
      s.held.push_back(buffer);
      return;
    }
  }
  abi::BufferCompleted completed;
  abi::BufferCompletedV2 completed_v2;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    completed = s.completed;
    completed_v2 = s.completed_v2;
  }
  --s.buffers_out;
  if (completed_v2) {
    completed_v2(buffer.data, buffer.bytes, buffer.used, nullptr);
  } else if (completed) {
    completed(nullptr, 0, buffer.data, buffer.bytes, buffer.used);
  }
}

bool request(Buffer *buffer) {
  State &s = state();
  abi::BufferRequested requested;
  abi::BufferRequestedV2 requested_v2;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    requested = s.requested;
    requested_v2 = s.requested_v2;
  }
  if (requested_v2) {
    requested_v2(&buffer->data, &buffer->bytes, &buffer->most, nullptr);
  } else if (requested) {
    requested(&buffer->data, &buffer->bytes, &buffer->most);
  }
  if (buffer->data) {
    ++s.buffers_out;
    std::memset(buffer->data, 0xA5, buffer->bytes); // a client that reads past the end shows it
  }
  return buffer->data != nullptr;
}

/// The delivering thread's buffer, out of the shared map, so that a flush cannot hand it over too.
Buffer checkOut() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  Buffer buffer = s.buffers[std::this_thread::get_id()];
  s.buffers.erase(std::this_thread::get_id());
  return buffer;
}

void checkIn(const Buffer &buffer) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (buffer.data) {
    s.buffers[std::this_thread::get_id()] = buffer;
  }
}

bool emit(Buffer *buffer, const std::vector<uint8_t> &record) {
  bool is_full = buffer->used + record.size() > buffer->bytes ||
                 (buffer->most && buffer->records >= buffer->most) ||
                 (state().most_records && buffer->records >= state().most_records);
  if (buffer->data && is_full) {
    complete(*buffer);
    *buffer = Buffer();
  }
  if (!buffer->data && !request(buffer)) {
    return false;
  }
  if (record.size() > buffer->bytes) {
    return false;
  }
  std::memcpy(buffer->data + buffer->used, record.data(), record.size());
  buffer->used += record.size();
  ++buffer->records;
  return true;
}

bool isEnabled(uint32_t kind) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.kinds.count(kind) > 0;
}

/// Lose a record if a test asked for it.
bool isToBeLost() {
  std::atomic<uint64_t> &left = state().device.drop_next;
  uint64_t count = left.load();
  while (count > 0 && !left.compare_exchange_weak(count, count - 1)) {
  }
  return count > 0;
}

void deliver(const std::vector<Work> &works) {
  fake::Device &device = state().device;
  Buffer buffer = checkOut();
  for (const Work &work : works) {
    std::vector<uint8_t> record = encode(work);
    uint32_t kind;
    std::memcpy(&kind, record.data(), sizeof kind);
    if (!isEnabled(kind)) {
      continue;
    }
    bool is_out = !isToBeLost() && emit(&buffer, record);
    ++(is_out ? device.delivered : device.dropped);
  }
  checkIn(buffer);
}

std::atomic<uint64_t> g_dropped_told{0};

void reportDropped(size_t *count) {
  uint64_t dropped = state().device.dropped;
  *count = dropped - g_dropped_told.exchange(dropped);
}

void synchronize(uint64_t ns) {
  Call call(kCtxSynchronize);
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().broken_captures += state().capturing.size();
  }
  usleep(static_cast<useconds_t>(ns / 1000));
}

bool isSubscriber(void *subscriber) {
  std::lock_guard<std::mutex> lock(state().mutex);
  return subscriber && subscriber == state().subscription.get();
}

int enableKind(uint32_t kind) {
  FAIL_IF_ASKED("cuptiActivityEnable");
  FAIL_IF_ASKED("cuptiActivityEnable:" + std::to_string(kind));
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.kinds.insert(kind);
  return abi::kSuccess;
}

int disableKind(uint32_t kind) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.kinds.erase(kind);
  return abi::kSuccess;
}

int nextRecord(uint8_t *buffer, size_t valid_bytes, abi::Activity **record) {
  if (state().device.has_faults) {
    FAIL_IF_ASKED("cuptiActivityGetNextRecord");
  }
  uint8_t *next = *record ? reinterpret_cast<uint8_t *>(*record) + sizeOf((*record)->kind) : buffer;
  if (next >= buffer + valid_bytes) {
    return abi::kMaxLimitReached;
  }
  *record = reinterpret_cast<abi::Activity *>(next);
  return abi::kSuccess;
}

} // namespace

// -- the CUPTI interface

FAKE_API int cuptiGetVersion(uint32_t *version) {
  FAIL_IF_ASKED("cuptiGetVersion");
  *version = state().sizes.version;
  return abi::kSuccess;
}

FAKE_API int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name) {
  FAIL_IF_ASKED("cuptiGetCallbackName");
  for (const CallName &call : kCalls) {
    if (domain == abi::kDomainDriver && call.id == id) {
      *name = call.name;
      return abi::kSuccess;
    }
  }
  return abi::kInvalidParameter;
}

FAKE_API int cuptiGetTimestamp(uint64_t *now) {
  FAIL_IF_ASKED("cuptiGetTimestamp");
  *now = fake::nowNs();
  return abi::kSuccess;
}
FAKE_API int cuptiGetTimestamp_v2(void *subscriber, uint64_t *now) {
  return isSubscriber(subscriber) ? cuptiGetTimestamp(now) : int{abi::kInvalidParameter};
}

FAKE_API int cuptiSubscribe(void **subscriber, abi::Callback callback, void *user) {
  FAIL_IF_ASKED("cuptiSubscribe");
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.subscription || !s.holder.empty()) {
    return abi::kMultipleSubscribers;
  }
  s.subscription = std::make_shared<Subscription>(Subscription{callback, user, false});
  *subscriber = s.subscription.get();
  return abi::kSuccess;
}

FAKE_API int cuptiSubscribe_v2(void **subscriber, abi::Callback callback, void *user,
                               abi::SubscriberParameters *parameters) {
  FAIL_IF_ASKED("cuptiSubscribe_v2");
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  bool is_wide = s.sizes.version >= abi::kVersionSubscriberParametersV2;
  if (parameters->bytes != (is_wide ? sizeof *parameters : abi::kSubscriberParametersV1)) {
    return abi::kInvalidParameter;
  }
  bool may_share = is_wide && parameters->allow_multiple && s.is_holder_sharing;
  if (s.subscription || (!s.holder.empty() && !may_share)) {
    if (parameters->old_name) {
      std::snprintf(parameters->old_name, parameters->old_name_bytes, "%s", s.holder.c_str());
    }
    return abi::kMultipleSubscribers;
  }
  s.subscription = std::make_shared<Subscription>(Subscription{callback, user, true});
  *subscriber = s.subscription.get();
  return abi::kSuccess;
}

FAKE_API int cuptiUnsubscribe(void *subscriber) {
  FAIL_IF_ASKED("cuptiUnsubscribe");
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (!subscriber) {
    return abi::kInvalidParameter;
  }
  s.subscription = nullptr;
  s.callbacks.clear();
  s.next_correlation = 1; // as CUPTI does: ids start over
  return abi::kSuccess;
}

FAKE_API int cuptiEnableCallback(uint32_t enable, void *, uint32_t domain, uint32_t id) {
  FAIL_IF_ASKED("cuptiEnableCallback");
  FAIL_IF_ASKED("cuptiEnableCallback:" + std::to_string(domain));
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (enable) {
    s.callbacks.insert({domain, id});
  } else {
    s.callbacks.erase({domain, id});
  }
  return abi::kSuccess;
}

FAKE_API int cuptiActivityRegisterCallbacks(abi::BufferRequested requested,
                                            abi::BufferCompleted completed) {
  FAIL_IF_ASKED("cuptiActivityRegisterCallbacks");
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.requested = requested;
  s.completed = completed;
  return abi::kSuccess;
}
FAKE_API int cuptiActivityRegisterCallbacks_v2(void *, abi::BufferRequestedV2 requested,
                                               abi::BufferCompletedV2 completed) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.requested_v2 = requested;
  s.completed_v2 = completed;
  return abi::kSuccess;
}

FAKE_API int cuptiActivityEnable(uint32_t kind) {
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (state().subscription && state().subscription->is_second_family &&
        state().sizes.version >= abi::kVersionManySubscribers) {
      return abi::kNotCompatible; // the two families cannot be mixed
    }
  }
  return enableKind(kind);
}
FAKE_API int cuptiActivityEnable_v2(void *, uint32_t kind, void *) { return enableKind(kind); }
FAKE_API int cuptiActivityDisable(uint32_t kind) { return disableKind(kind); }
FAKE_API int cuptiActivityDisable_v2(void *, uint32_t kind, void *) { return disableKind(kind); }

FAKE_API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                        abi::Activity **record) {
  return nextRecord(buffer, valid_bytes, record);
}
FAKE_API int cuptiActivityGetNextRecord_v2(void *subscriber, uint8_t *buffer, size_t valid_bytes,
                                           abi::Activity **record) {
  return isSubscriber(subscriber) ? nextRecord(buffer, valid_bytes, record)
                                  : int{abi::kInvalidParameter};
}

FAKE_API int cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *dropped) {
  reportDropped(dropped);
  return abi::kSuccess;
}
FAKE_API int cuptiActivityGetNumDroppedRecords_v2(void *, void *, uint32_t, size_t *dropped) {
  reportDropped(dropped);
  return abi::kSuccess;
}

FAKE_API int cuptiActivityFlushAll(uint32_t) {
  FAIL_IF_ASKED("cuptiActivityFlushAll");
  std::map<std::thread::id, Buffer> buffers;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    buffers.swap(state().buffers);
  }
  for (const auto &[thread, buffer] : buffers) {
    complete(buffer);
  }
  return abi::kSuccess;
}

FAKE_API int cuptiGetGraphNodeId(void *node, uint64_t *id) {
  FAIL_IF_ASKED("cuptiGetGraphNodeId");
  *id = reinterpret_cast<uintptr_t>(node);
  return abi::kSuccess;
}

// -- the test's side; control.h says what each does

FAKE_API void fake_reset() {
  State &s = state();
  s.device.reset();
  g_dropped_told = 0;
  fake::resetStalls();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.sizes = kSizes[2];
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
  s.most_records = 0;
  s.buffers_out = 0;
  s.capturing.clear();
  s.broken_captures = 0;
  s.next_correlation = 1;
}

FAKE_API void fake_set_version(uint32_t version) {
  for (const Sizes &sizes : kSizes) {
    if (sizes.version <= version) {
      state().sizes = sizes;
    }
  }
}
FAKE_API void fake_fail(const char *function, int code) {
  std::lock_guard<std::mutex> lock(state().device.mutex);
  state().device.faults[function] = code;
  state().device.has_faults = true;
}
FAKE_API void fake_hang(const char *function, uint64_t ns) {
  std::lock_guard<std::mutex> lock(state().device.mutex);
  state().device.hangs[function] = ns;
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

FAKE_API void fake_set_device(uint32_t device) { fake::t_device = device % fake::kDevices; }
FAKE_API void fake_launch(const char *kernel, uint32_t stream, uint64_t ns) {
  State &s = state();
  Work work;
  work.name = s.device.intern(kernel);
  work.stream = stream;
  Call call(kLaunchKernel);
  uint32_t graph = 0;
  uint64_t node = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    auto capturing = s.capturing.find(stream);
    if (capturing != s.capturing.end()) {
      graph = capturing->second;
      node = s.device.next_node++;
      work.end_ns = ns; // the duration, until it is replayed
      s.device.graphs[graph].works.push_back(work);
      s.device.graphs[graph].nodes.push_back(node);
    }
  }
  if (graph) {
    tellGraphNode(abi::kResourceGraphNodeCreated, graph, node, 0);
    return;
  }
  work.correlation = call.correlation;
  s.device.schedule(work, ns);
}

FAKE_API void fake_launch_many(const char *kernel, uint32_t stream, uint64_t ns, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    fake_launch(kernel, stream, ns);
  }
}

FAKE_API void fake_copy(const char *direction, uint64_t bytes, uint64_t ns, int is_blocking) {
  Work work;
  work.what = What::kCopy;
  work.name = state().device.intern(direction);
  work.bytes = bytes;
  uint32_t id = copyKind(direction) == 10  ? 319
                : copyKind(direction) == 2 ? (is_blocking ? 278 : 279)
                                           : (is_blocking ? 276 : 277);
  Call call(id);
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

FAKE_API void fake_capture_begin(uint32_t stream) {
  State &s = state();
  Call call(kBeginCapture);
  std::lock_guard<std::mutex> lock(s.mutex);
  s.capturing[stream] = s.device.next_graph++;
}
FAKE_API uint32_t fake_capture_end(uint32_t stream) {
  State &s = state();
  Call call(kEndCapture);
  std::lock_guard<std::mutex> lock(s.mutex);
  uint32_t graph = s.capturing[stream];
  s.capturing.erase(stream);
  return graph;
}

FAKE_API uint32_t fake_graph_instantiate(uint32_t graph) {
  State &s = state();
  fake::Graph executable;
  uint32_t id = 0;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    executable = s.device.graphs[graph];
    executable.sources = executable.nodes;
    for (uint64_t &node : executable.nodes) {
      node = s.device.next_node++;
    }
    id = s.device.next_graph++;
    s.device.graphs[id] = executable;
  }
  for (size_t i = 0; i < executable.nodes.size(); ++i) {
    // CUPTI tells of a clone's node twice: as of any new one, and as of a clone.
    tellGraphNode(abi::kResourceGraphNodeCreated, id, executable.nodes[i], 0);
    tellGraphNode(abi::kResourceGraphNodeCloned, id, executable.nodes[i], executable.sources[i]);
  }
  return id;
}

FAKE_API void fake_graph_launch(uint32_t executable, uint32_t stream) {
  State &s = state();
  fake::Graph graph;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    graph = s.device.graphs[executable];
  }
  Call call(kGraphLaunch);
  for (size_t i = 0; i < graph.works.size(); ++i) {
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
  for (uint64_t node : gone.nodes) {
    tellGraphNode(abi::kResourceGraphNodeDestroy, graph, node, 0);
  }
}

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
  state().requested = [](uint8_t **buffer, size_t *bytes, size_t *most) {
    mine->emplace_back(1u << 16);
    *buffer = mine->back().data();
    *bytes = mine->back().size();
    *most = 0;
  };
  state().completed = [](void *, uint32_t, uint8_t *, size_t, size_t) {};
}

FAKE_API void fake_destroy_context() {
  if (auto subscription = listener(abi::kDomainResource, abi::kResourceContextDestroy)) {
    abi::ResourceData resource{};
    resource.context = kContext;
    ++state().device.callbacks;
    subscription->callback(subscription->user, abi::kDomainResource, abi::kResourceContextDestroy,
                           &resource);
  }
  fake::stallContextGone(kContext);
}

FAKE_API uint64_t fake_count(const char *name) {
  State &s = state();
  std::string what = name;
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
    return fake::stallMisuses() + s.broken_captures;
  }
  if (what == "buffers_out") {
    return s.buffers_out;
  }
  std::lock_guard<std::mutex> lock(s.mutex);
  if (what == "subscribed") {
    return s.subscription ? 1 : 0;
  }
  if (what == "services") {
    return s.kinds.size() + s.callbacks.size() + fake::sampledContexts();
  }
  return UINT64_MAX;
}
