#include "gpu/cupti/driver_state.h"

#include "gpu/dynlib.h"

namespace deepcontext::gpu::cupti {

namespace {

constexpr int kNotInitialized = 3; // CUDA_ERROR_NOT_INITIALIZED, also in a child of a fork

} // namespace

bool isDriverRunning(const std::string &path) {
  DynLib driver;
  int (*get_count)(int *) = nullptr;
  int count = 0;
  return driver.openMapped(path) && driver.bind(&get_count, "cuDeviceGetCount") &&
         get_count(&count) != kNotInitialized;
}

} // namespace deepcontext::gpu::cupti
