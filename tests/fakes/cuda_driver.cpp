// A stand-in for libcuda.so.1 with the few functions that a profiler calls itself.
#include "device.h"

namespace {

std::atomic<void (*)(uint64_t)> g_synchronize{nullptr};
thread_local std::vector<void *> t_contexts;

} // namespace

/// Where cuCtxSynchronize goes on: the fake CUPTI of the same test.
FAKE_API void fake_set_synchronize(void (*synchronize)(uint64_t)) { g_synchronize = synchronize; }

FAKE_API int cuInit(unsigned) {
  if (fake::faultOfEnvironment("cuInit") < 0) {
    std::abort(); // a driver that crashes
  }
  return fake::faultOfEnvironment("cuInit");
}
FAKE_API int cuDeviceGetCount(int *count) {
  *count = fake::faultOfEnvironment("devices") ? 0 : static_cast<int>(fake::kDevices);
  return 0;
}
FAKE_API int cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
FAKE_API int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
/// An H100 has 132 multiprocessors; other attributes are not known.
FAKE_API int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = 132;
  return attribute == 16 ? 0 : 1;
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
  if (auto synchronize = g_synchronize.load()) {
    synchronize(0);
  }
  return 0;
}
