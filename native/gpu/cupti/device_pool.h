#pragma once
// The memory that CUPTI itself takes on the device, for the times of kernels.
#include <cstddef>

#include "gpu/cupti/library.h"

namespace deepcontext::gpu::cupti {

/// Bounds CUPTI's pool for contexts that are created from now on. Buffers have 3.2 MB for 100,000
/// kernels, and CUPTI would take up to 250 of them for a context (800 MB) when records are not
/// fetched; kMostBuffers are 205 MB.
class DevicePool {
public:
  static constexpr size_t kMostBuffers = 64;

  /// A library that refuses keeps its own limit.
  void bound(const Library &library, const Serial &cupti);
  /// Give the library the limit it had.
  void restore(const Serial &cupti);

private:
  size_t before_ = 0; // 0: not changed
};

} // namespace deepcontext::gpu::cupti
