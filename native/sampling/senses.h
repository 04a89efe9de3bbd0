#pragma once
// The sampler's access to the kernel and to memory.
#include "core/memory_reader.h"
#include "sampling/kernel_threads.h"

namespace deepcontext {

/// Only the sampler's thread may construct it, because the descriptors are in its own table.
struct Senses {
  KernelThreads kernel;
  MemoryReader memory;

  bool areUsable() const { return kernel.isUsable() && memory.isUsable(); }
};

} // namespace deepcontext
