#pragma once
// What the sampler's thread looks through.
#include "sampling/kernel_threads.h"
#include "core/memory_reader.h"

namespace deepcontext {

/// Only the sampler's thread may open them: their descriptors are in its own table.
struct Senses {
  KernelThreads kernel;
  MemoryReader memory;

  bool areUsable() const { return kernel.isUsable() && memory.isUsable(); }
};

} // namespace deepcontext
