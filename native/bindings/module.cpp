#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "core/mutex.h"
#include "sampling/sampler.h"
#include "session/fork_handlers.h"

/// Number of the profiler's locks that the calling thread holds. The tests look it up, to call it
/// where the interpreter allocates.
extern "C" __attribute__((visibility("default"))) int deepcontext_locks_held() {
  return deepcontext::Mutex::heldByThisThread();
}

NB_MODULE(_native, module) {
  module.attr("VERSION") = DEEPCONTEXT_VERSION;
  deepcontext::bindSession(module);
  deepcontext::bindPython(module);
  deepcontext::bindNativeFrames(module);
  deepcontext::bindSampling(module);
  deepcontext::bindSystem(module);
  deepcontext::bindTorch(module);
  deepcontext::bindCollectives(module);
  deepcontext::bindNccl(module);
  deepcontext::bindMemory(module);
  deepcontext::bindGpu(module);
  deepcontext::bindJax(module);
  deepcontext::bindJaxPrograms(module);
  deepcontext::Sampler::instance(); // made now, not in a forked child
  deepcontext::installForkHandlers();
}
