#include "python/hold_up.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace deepcontext {

namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kMoment{1};
constexpr Milliseconds kLookInterval{10};
constexpr int kLooksThatMeanALock = 10;

timespec toTimespec(Milliseconds time) {
  return {static_cast<time_t>(time.count() / 1000),
          static_cast<long>(time.count() % 1000 * 1'000'000)};
}

void sleepFor(Milliseconds time) {
  timespec left = toTimespec(time);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

/// "/proc/self/task/<thread>/syscall", without the library's printf: this runs in a handler.
void writePath(pid_t thread, char *path) {
  char digits[16];
  int count = 0;
  for (; thread; thread /= 10) {
    digits[count++] = static_cast<char>('0' + thread % 10);
  }
  char *end = stpcpy(path, "/proc/self/task/");
  while (count) {
    *end++ = digits[--count];
  }
  std::strcpy(end, "/syscall");
}

/// Whether a thread of this process sleeps on a lock, or is not there while it has been stopped for
/// a fork; false where the kernel does not say.
bool waitsForLock(pid_t thread) {
  char path[64];
  writePath(thread, path);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return errno == ENOENT;
  }
  char text[16] = {}; // "202 0x7f...": the number of the system call first, or "running"
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  long number = 0;
  const char *digit = text;
  for (; *digit >= '0' && *digit <= '9'; digit++) {
    number = 10 * number + (*digit - '0');
  }
  return length > 0 && digit != text && number == SYS_futex;
}

/// Have the kernel send a signal to the calling thread; the timer is left to the dying process.
bool askForSignal(int signal_number, Milliseconds when) {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_number;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  int timer = 0; // the kernel's: the library's timer_create() allocates
  itimerspec setting = {{0, 0}, toTimespec(when)};
  return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0 &&
         syscall(SYS_timer_settime, timer, 0, &setting, nullptr) == 0;
}

} // namespace

bool holdUp(pid_t writer, int signal_number, std::chrono::steady_clock::time_point end) {
  int looks_at_lock = 0;
  while (std::chrono::steady_clock::now() < end) {
    sleepFor(kLookInterval);
    looks_at_lock = waitsForLock(writer) ? looks_at_lock + 1 : 0;
    if (looks_at_lock == kLooksThatMeanALock && askForSignal(signal_number, kMoment)) {
      return false;
    }
  }
  return true;
}

} // namespace deepcontext
