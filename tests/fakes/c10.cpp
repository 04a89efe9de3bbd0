// A stand-in for libc10.so: the host's allocator of PyTorch, and what device allocators report to.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "abi/torch.h"

#define EXPORT __attribute__((visibility("default")))

namespace {
std::atomic<int64_t> g_reported{0};
}

namespace c10 {

// c10::Device takes part in the mangled name, so this one has the true one's.
struct Device {
  int8_t type;
  int8_t index;
};
static_assert(sizeof(Device) == sizeof(deepcontext::abi::Device));

EXPORT void reportMemoryUsageToProfiler(void *, int64_t bytes, size_t, size_t, Device device) {
  g_reported += bytes + device.index;
}

} // namespace c10

extern "C" {

EXPORT void *fake_allocate(size_t bytes) {
  void *address = nullptr;
  return posix_memalign(&address, 64, bytes) == 0 ? address : nullptr;
}
EXPORT void *fake_allocate_elsewhere(size_t bytes) {
  return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
}
EXPORT void fake_free(void *address) {
  std::free(address);
}
/// Sum of all bytes reported, each with its device's index added.
EXPORT int64_t fake_reported() {
  return g_reported;
}
}
