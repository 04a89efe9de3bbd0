// The least a CUPTI tool can cost: a callback that does nothing at every launch, and, when asked,
// kernel records that are thrown away. The floor for the overhead table.
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>

#include "abi/cupti.h"

namespace abi = deepcontext::abi::cupti;

namespace {

constexpr uint32_t kMostCallbacks = 2048;
constexpr size_t kBufferBytes = 4u << 20;

void onCallback(void *, uint32_t, uint32_t, const void *) {}

void onRequested(uint8_t **buffer, size_t *bytes, size_t *most) {
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, kBufferBytes));
  *bytes = kBufferBytes;
  *most = 0;
}

void onCompleted(void *, uint32_t, uint8_t *buffer, size_t, size_t) { std::free(buffer); }

template <typename Function> Function find(void *library, const char *name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

} // namespace

/// 0, or the first error of CUPTI; -1 when `path` is no libcupti.
extern "C" int empty_subscriber_start(const char *path, int with_records) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return -1;
  }
  abi::Subscriber subscriber = nullptr;
  auto subscribe =
      find<abi::Result (*)(abi::Subscriber *, abi::Callback, void *)>(library, "cuptiSubscribe");
  auto name = find<abi::Result (*)(uint32_t, uint32_t, const char **)>(library,
                                                                      "cuptiGetCallbackName");
  auto enable = find<abi::Result (*)(uint32_t, abi::Subscriber, uint32_t, uint32_t)>(
      library, "cuptiEnableCallback");
  if (int error = subscribe(&subscriber, onCallback, nullptr)) {
    return error;
  }
  for (uint32_t id = 1; id < kMostCallbacks; ++id) {
    const char *function = nullptr;
    if (name(abi::kDomainDriver, id, &function) == abi::kSuccess && function &&
        std::string_view(function).substr(0, 8) == "cuLaunch") {
      enable(1, subscriber, abi::kDomainDriver, id);
    }
  }
  if (!with_records) {
    return 0;
  }
  auto callbacks = find<abi::Result (*)(abi::BufferRequested, abi::BufferCompleted)>(
      library, "cuptiActivityRegisterCallbacks");
  auto activity = find<abi::Result (*)(uint32_t)>(library, "cuptiActivityEnable");
  if (int error = callbacks(onRequested, onCompleted)) {
    return error;
  }
  return activity(abi::kKindConcurrentKernel);
}
