#include "sampling/sample_detail.h"

#include <sys/syscall.h>

#include "sampling/kernel_threads.h"

namespace deepcontext {

SampleDetail waitedFor(const ThreadState &state) {
  switch (state.system_call) {
  case -1:
    return SampleDetail::kNone;
  case SYS_futex:
    return SampleDetail::kLock;
  case SYS_wait4:
  case SYS_waitid:
    return SampleDetail::kProcess;
  case SYS_nanosleep:
  case SYS_clock_nanosleep:
    return SampleDetail::kSleep;
  default: // whatever else blocks reads, writes, connects, or polls
    return SampleDetail::kIo;
  }
}

} // namespace deepcontext
