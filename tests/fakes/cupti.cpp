// A stand-in for libcupti.so with the true binary interface: a subscriber's callbacks run on the
// launching thread, records come in the client's buffers, and every fault can be asked for. This
// file is CUPTI's side of it; the test's is cupti_scenario.cpp.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#include "cupti_device.h"
#include "cupti_stalls.h"

using namespace fake::cupti;

namespace {

/// As CUPTI 13.3 and 13.5: without a client they follow a null pointer.
void reportDropped(size_t *count) {
  if (state().device.has_faults) {
    state().device.fault("cuptiActivityGetNumDroppedRecords");
  }
  if (std::lock_guard<std::mutex> lock(state().mutex); !state().subscription) {
    std::fputs("fake CUPTI: dropped records are asked for after the unsubscribe\n", stderr);
    std::abort();
  }
  uint64_t dropped = state().device.dropped;
  *count = dropped - state().dropped_told.exchange(dropped);
}

/// As CUPTI does: a subscription lists the devices, also before the program's own cuInit.
void enumerateDevices() {
  const char *path = std::getenv("DEEPCONTEXT_LIBCUDA");
  void *driver = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  void *function = driver ? dlsym(driver, "fake_enumerate") : nullptr;
  if (function) {
    reinterpret_cast<bool (*)()>(function)();
  }
}

/// Name of this library's file, as it was opened first.
std::string ownFile() {
  Dl_info info{};
  dladdr(reinterpret_cast<void *>(enumerateDevices), &info);
  std::string path = info.dli_fname ? info.dli_fname : "";
  return path.substr(path.rfind('/') + 1);
}

bool isSubscriber(void *subscriber) {
  std::lock_guard<std::mutex> lock(state().mutex);
  return subscriber && subscriber == state().subscription.get();
}

int enableKind(uint32_t kind) {
  ClientCall client;
  FAIL_IF_ASKED("cuptiActivityEnable");
  FAIL_IF_ASKED("cuptiActivityEnable:" + std::to_string(kind));
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.kinds.insert(kind);
  return abi::kSuccess;
}

int disableKind(uint32_t kind) {
  ClientCall client;
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

FAKE_API int cuptiGetVersion(uint32_t *version) {
  FAIL_IF_ASKED("cuptiGetVersion");
  *version = state().sizes.version;
  return abi::kSuccess;
}

FAKE_API int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name) {
  FAIL_IF_ASKED("cuptiGetCallbackName");
  const char *known = domain == abi::kDomainDriver ? nameOfCall(id) : nullptr;
  if (!known) {
    return abi::kInvalidParameter;
  }
  *name = known;
  return abi::kSuccess;
}

FAKE_API int cuptiGetTimestamp(uint64_t *now) {
  FAIL_IF_ASKED("cuptiGetTimestamp");
  *now = timestamp();
  return abi::kSuccess;
}
FAKE_API int cuptiGetTimestamp_v2(void *subscriber, uint64_t *now) {
  return isSubscriber(subscriber) ? cuptiGetTimestamp(now) : int{abi::kInvalidParameter};
}

FAKE_API int cuptiActivityRegisterTimestampCallback(abi::Timestamp clock) {
  ClientCall client;
  FAIL_IF_ASKED("cuptiActivityRegisterTimestampCallback");
  if (!clock) {
    return abi::kInvalidParameter;
  }
  state().clock = clock;
  return abi::kSuccess;
}

FAKE_API int cuptiSubscribe(void **subscriber, abi::Callback callback, void *user) {
  ClientCall client;
  int code = fake::faultOfEnvironment("cuptiSubscribe");
  if (code || (code = fake::faultOfEnvironment("cuptiSubscribe:" + ownFile()))) {
    return code;
  }
  FAIL_IF_ASKED("cuptiSubscribe");
  enumerateDevices();
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
  ClientCall client;
  FAIL_IF_ASKED("cuptiUnsubscribe");
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (!subscriber) {
    return abi::kInvalidParameter;
  }
  s.subscription = nullptr;
  s.requested_v2 = nullptr; // a subscriber's own, those of the first family are the process's
  s.completed_v2 = nullptr;
  s.callbacks.clear();
  s.next_correlation = 1; // as CUPTI does: ids start over
  return abi::kSuccess;
}

FAKE_API int cuptiEnableCallback(uint32_t enable, void *, uint32_t domain, uint32_t id) {
  ClientCall client;
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
  ClientCall client;
  FAIL_IF_ASKED("cuptiActivityRegisterCallbacks");
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.requested = requested;
  s.completed = completed;
  return abi::kSuccess;
}
FAKE_API int cuptiActivityRegisterCallbacks_v2(void *, abi::BufferRequestedV2 requested,
                                               abi::BufferCompletedV2 completed) {
  FAIL_IF_ASKED("cuptiActivityRegisterCallbacks_v2");
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
FAKE_API int cuptiActivityEnable_v2(void *, uint32_t kind, void *) {
  FAIL_IF_ASKED("cuptiActivityEnable_v2");
  return enableKind(kind);
}
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

FAKE_API int cuptiActivityFlushAll(uint32_t flags) {
  ClientCall client;
  FAIL_IF_ASKED("cuptiActivityFlushAll");
  bool is_withheld = flags == abi::kFlushForced ? fake::sampledContexts() > 0 // driver 590 and newer
                                                : state().is_incomplete.load();
  if (is_withheld) {
    return abi::kSuccess;
  }
  client.lock();
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

FAKE_API int cuptiActivityGetAttribute(uint32_t attribute, size_t *bytes, void *value) {
  if (attribute != abi::kAttributeDevicePoolLimit || *bytes != sizeof(size_t)) {
    return abi::kInvalidParameter;
  }
  *static_cast<size_t *>(value) = state().device_pool_limit;
  return abi::kSuccess;
}
FAKE_API int cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value) {
  ClientCall client;
  FAIL_IF_ASKED("cuptiActivitySetAttribute");
  if (attribute != abi::kAttributeDevicePoolLimit || *bytes != sizeof(size_t)) {
    return abi::kInvalidParameter;
  }
  state().device_pool_limit = *static_cast<size_t *>(value);
  return abi::kSuccess;
}

FAKE_API int cuptiGetDeviceId(void *context, uint32_t *device) {
  *device = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(context) / 0x1000 - 1);
  return abi::kSuccess;
}

FAKE_API int cuptiGetGraphNodeId(void *node, uint64_t *id) {
  FAIL_IF_ASKED("cuptiGetGraphNodeId");
  std::lock_guard<std::mutex> lock(state().mutex);
  uint64_t handle = reinterpret_cast<uintptr_t>(node);
  auto moved = state().renumbered.find(handle);
  *id = moved == state().renumbered.end() ? handle : moved->second;
  return abi::kSuccess;
}

