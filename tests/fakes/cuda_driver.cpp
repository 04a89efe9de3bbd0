// A stand-in for libcuda.so.1 with the few functions that a profiler calls itself.
#include <cstdio>
#include <dlfcn.h>

#include "device.h"

namespace {

constexpr int kNotInitialized = 3; // also in a child that was forked after the initialisation

std::atomic<void (*)(uint64_t)> g_synchronize{nullptr};
thread_local std::vector<void *> t_contexts;
// The process that the driver belongs to, from when its devices were first listed. 0: none yet.
std::atomic<pid_t> g_owner{0};
std::atomic<bool> g_is_initialized{false};
std::atomic<int> g_devices{0};
std::atomic<bool> g_is_partition{false}; // of a GPU (MIG)
std::mutex g_mutex;
std::set<void *> g_waited_for; // contexts

/// Devices that $CUDA_VISIBLE_DEVICES leaves; it counts once, when they are listed first.
int visibleDevices() {
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (fake::faultOfEnvironment("devices")) {
    return 0;
  }
  if (!visible) {
    return static_cast<int>(fake::kDevices);
  }
  std::string list = visible;
  if (list.rfind("MIG-", 0) == 0) { // a process sees one partition
    g_is_partition = true;
    return 1;
  }
  return list.empty() ? 0 : 1 + static_cast<int>(std::count(list.begin(), list.end(), ','));
}

/// As the driver does: load the library that a tool offers, and tell it.
void inject() {
  const char *path = std::getenv("CUDA_INJECTION64_PATH");
  void *library = path && !fake::faultOfEnvironment("injection") ? dlopen(path, RTLD_LAZY) : nullptr;
  void *function = library ? dlsym(library, "InitializeInjection") : nullptr;
  if (function) {
    reinterpret_cast<int (*)()>(function)();
  }
}

} // namespace

/// List the devices, as cuInit does, and as cuptiSubscribe does before it. False in a forked child.
FAKE_API bool fake_enumerate() {
  pid_t owner = 0;
  if (g_owner.compare_exchange_strong(owner, getpid())) {
    g_devices = visibleDevices();
  }
  return g_owner == getpid();
}

/// Where cuCtxSynchronize goes on: the fake CUPTI of the same test.
FAKE_API void fake_set_synchronize(void (*synchronize)(uint64_t)) {
  g_synchronize = synchronize;
  std::lock_guard<std::mutex> lock(g_mutex);
  g_waited_for.clear();
}
/// How many contexts were waited for since then.
FAKE_API int fake_waited_contexts() {
  std::lock_guard<std::mutex> lock(g_mutex);
  return static_cast<int>(g_waited_for.size());
}

FAKE_API int cuInit(unsigned) {
  if (fake::faultOfEnvironment("cuInit") < 0) {
    std::abort(); // a driver that crashes
  }
  if (!g_is_initialized) {
    inject();
  }
  if (!fake_enumerate()) {
    return kNotInitialized;
  }
  g_is_initialized = true;
  return fake::faultOfEnvironment("cuInit");
}
FAKE_API int cuDeviceGetCount(int *count) {
  if (!g_is_initialized || g_owner != getpid()) {
    return kNotInitialized;
  }
  *count = g_devices;
  return 0;
}
FAKE_API int cuDriverGetVersion(int *version) {
  int newer = fake::faultOfEnvironment("driver_version");
  *version = newer ? newer : 13000;
  return 0;
}
FAKE_API int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
/// An H100 has 132 multiprocessors, a seventh of it 16; other attributes are not known.
FAKE_API int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = g_is_partition ? 16 : 132;
  return attribute == 16 ? 0 : 1;
}
FAKE_API int cuDeviceGetName(char *name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "%s", "NVIDIA H100 80GB HBM3");
  return 0;
}
FAKE_API int cuCtxPushCurrent_v2(void *context) {
  t_contexts.push_back(context);
  return 0;
}
FAKE_API int cuCtxPopCurrent_v2(void **context) {
  if (t_contexts.empty()) {
    return 201;
  }
  *context = t_contexts.back();
  t_contexts.pop_back();
  return 0;
}
FAKE_API int cuCtxSynchronize() {
  if (!t_contexts.empty()) {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_waited_for.insert(t_contexts.back());
  }
  if (auto synchronize = g_synchronize.load()) {
    synchronize(0);
  }
  return 0;
}
