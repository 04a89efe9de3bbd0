#include "gpu/cupti/device_pool.h"

namespace deepcontext::gpu::cupti {

namespace {

bool setLimit(const Serial &cupti, size_t limit) {
  size_t bytes = sizeof limit;
  return cupti->ActivitySetAttribute(abi::cupti::kAttributeDevicePoolLimit, &bytes, &limit) ==
         abi::cupti::kSuccess;
}

} // namespace

void DevicePool::bound(const Library &library, const Serial &cupti) {
  size_t limit = 0, bytes = sizeof limit;
  bool is_known = library.ActivityGetAttribute && cupti->ActivitySetAttribute &&
                  library.ActivityGetAttribute(abi::cupti::kAttributeDevicePoolLimit, &bytes,
                                               &limit) == abi::cupti::kSuccess;
  if (is_known && limit > kMostBuffers && setLimit(cupti, kMostBuffers)) {
    before_ = limit;
  }
}

void DevicePool::restore(const Serial &cupti) {
  if (before_ != 0) {
    setLimit(cupti, before_);
  }
  before_ = 0;
}

} // namespace deepcontext::gpu::cupti
