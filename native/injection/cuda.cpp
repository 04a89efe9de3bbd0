// The library that CUDA's driver loads inside the program's first cuInit, where
// CUDA_INJECTION64_PATH names it. A separate library, without the C++ library and without Python,
// because processes that the program starts inherit the variable. In these processes no function is
// set, so the library does nothing.
#include <atomic>

namespace {

std::atomic<void (*)()> g_function{nullptr};

} // namespace

/// What is called inside cuInit, once; null for nothing.
extern "C" __attribute__((visibility("default"))) void deepcontextSetInjection(void (*function)()) {
  g_function.store(function);
}

/// Called by the driver. 0 would end cuInit with an error.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (auto function = g_function.exchange(nullptr)) {
    function();
  }
  return 1;
}
