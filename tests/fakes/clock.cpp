// A steady clock that a test can put forward; loaded before the program (LD_PRELOAD).
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"

namespace {

std::atomic<long> g_skipped_s{0};

} // namespace

FAKE_API void fake_clock_skip(long seconds) { g_skipped_s += seconds; }

FAKE_API int clock_gettime(clockid_t clock, timespec *now) {
  long result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_MONOTONIC) {
    now->tv_sec += g_skipped_s;
  }
  return static_cast<int>(result);
}
