// A stand-in for libc10_cuda.so: a caching allocator of a device, as far as it tells what it does.
#include <cstddef>
#include <cstdint>

#define EXPORT __attribute__((visibility("default")))

namespace c10 {
struct Device {
  int8_t type;
  int8_t index;
};
void reportMemoryUsageToProfiler(void *address, int64_t bytes, size_t allocated, size_t reserved,
                                 Device device);
} // namespace c10

/// A block of `bytes` is handed out, or with bytes below 0 taken back.
extern "C" EXPORT void fake_report(void *address, int64_t bytes, size_t reserved, int index) {
  constexpr int8_t kCuda = 1;
  c10::reportMemoryUsageToProfiler(address, bytes, 0, reserved,
                                   {kCuda, static_cast<int8_t>(index)});
}
