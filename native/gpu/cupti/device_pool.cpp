#include "gpu/cupti/device_pool.h"

namespace deepcontext::gpu::cupti {

namespace {

bool setLimit(const Library &library, size_t limit) {
  size_t bytes = sizeof limit;
  return library.ActivitySetAttribute(abi::cupti::kAttributeDevicePoolLimit, &bytes, &limit) ==
         abi::cupti::kSuccess;
}

} // namespace

void DevicePool::bound(const Library &library) {
  size_t limit = 0, bytes = sizeof limit;
  bool is_known = library.ActivityGetAttribute && library.ActivitySetAttribute &&
                  library.ActivityGetAttribute(abi::cupti::kAttributeDevicePoolLimit, &bytes,
                                               &limit) == abi::cupti::kSuccess;
  if (is_known && limit > kMostBuffers && setLimit(library, kMostBuffers)) {
    before_ = limit;
  }
}

void DevicePool::restore(const Library &library) {
  if (before_ != 0) {
    setLimit(library, before_);
  }
  before_ = 0;
}

} // namespace deepcontext::gpu::cupti
