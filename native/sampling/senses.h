#pragma once
// What the sampler's thread looks through.
#include "core/memory_reader.h"
#include "sampling/kernel_threads.h"

namespace deepcontext {

/// Only the sampler's thread may open them: their descriptors are in its own table.
struct Senses {
  KernelThreads kernel;
  MemoryReader memory;

  bool areUsable() const { return kernel.isUsable() && memory.isUsable(); }
};

} // namespace deepcontext
