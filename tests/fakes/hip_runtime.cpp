// A stand-in for libamdhip64.so with the few functions that a profiler calls itself.
#include "device.h"

namespace {

std::atomic<void (*)(uint64_t)> g_synchronize{nullptr};
std::mutex g_mutex;
std::set<int> g_waited_for;
thread_local int t_current = 0;

} // namespace

/// Where hipDeviceSynchronize goes on: the fake profiling library of the same test.
FAKE_API void fake_set_synchronize(void (*synchronize)(uint64_t)) {
  g_synchronize = synchronize;
  std::lock_guard<std::mutex> lock(g_mutex);
  g_waited_for.clear();
}
/// Whether hipDeviceSynchronize was called for a device.
FAKE_API int fake_was_waited_for(int device) {
  std::lock_guard<std::mutex> lock(g_mutex);
  return g_waited_for.count(device) != 0;
}

FAKE_API int hipInit(unsigned) { return fake::faultOfEnvironment("hipInit"); }
FAKE_API int hipGetDeviceCount(int *count) {
  *count = fake::faultOfEnvironment("devices") ? 0 : static_cast<int>(fake::kDevices);
  return 0;
}

FAKE_API int hipRuntimeGetVersion(int *version) {
  int given = fake::faultOfEnvironment("hip_version");
  *version = given ? given : 70000000;
  return 0;
}

FAKE_API int hipSetDevice(int device) {
  if (device < 0 || device >= static_cast<int>(fake::kDevices)) {
    return 101;
  }
  t_current = device;
  return 0;
}

FAKE_API int hipDeviceSynchronize() {
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_waited_for.insert(t_current);
  }
  if (auto synchronize = g_synchronize.load()) {
    synchronize(0);
  }
  return 0;
}
