#pragma once
// Which thread the calling one is. Async-signal-safe.
#include <unistd.h>

#include "core/system_call.h"

namespace deepcontext {

/// The kernel's number of the calling thread.
inline int kernelThread() {
  return static_cast<int>(systemCall(SYS_gettid));
}

/// Whether it is the first thread of the process.
inline bool isMainThread() {
  return getpid() == kernelThread();
}

} // namespace deepcontext
