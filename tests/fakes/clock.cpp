// A steady clock that stands where a test puts it; loaded before the program (LD_PRELOAD).
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"

namespace {

std::atomic<long> g_first_s{0};
std::atomic<long> g_held_s{0}; // 0: the clock runs

} // namespace

/// Let the clock stand, so many seconds after it was stopped first.
FAKE_API void fake_clock_hold(long seconds) {
  timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  long unset = 0;
  g_first_s.compare_exchange_strong(unset, now.tv_sec);
  g_held_s = g_first_s + seconds;
}
FAKE_API void fake_clock_release() { g_held_s = 0; }

FAKE_API int clock_gettime(clockid_t clock, timespec *now) {
  long held = g_held_s;
  if (clock == CLOCK_MONOTONIC && held != 0) {
    *now = {held, 0};
    return 0;
  }
  return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
}
