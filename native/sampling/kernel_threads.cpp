#include "sampling/kernel_threads.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/system_call.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

namespace deepcontext {

namespace {

// Below 32, without SIGKILL and SIGSTOP, which nobody can block.
constexpr uint64_t kAllSignals = 0x7fffffff & ~(1ULL << (SIGKILL - 1)) & ~(1ULL << (SIGSTOP - 1));

// Source: linux/close_range.h, kernel 5.9.
constexpr unsigned kCloseRangeUnshare = 2;

/// Close the descriptors of the copied table one by one, for kernels before 5.9.
void closeFrom(int first) {
  DIR *folder = opendir("/proc/thread-self/fd");
  if (!folder) {
    return;
  }
  std::vector<int> open_files;
  while (const dirent *file = readdir(folder)) {
    if (file->d_name[0] != '.' && std::atoi(file->d_name) >= first) {
      open_files.push_back(std::atoi(file->d_name));
    }
  }
  closedir(folder);
  for (int file : open_files) {
    close(file);
  }
}

} // namespace

bool separateDescriptors(std::string *reason, unsigned first_closed) {
  if (systemCall(SYS_close_range, first_closed, ~0u, kCloseRangeUnshare) == 0) {
    return true;
  }
  if (unshare(CLONE_FILES) == 0) {
    closeFrom(static_cast<int>(first_closed));
    return true;
  }
  *reason = std::string("the kernel gives a thread no separate descriptors (close_range and "
                        "unshare: ") +
            std::strerror(errno) + ")";
  return false;
}

KernelThreads::KernelThreads()
    : folder_(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

KernelThreads::~KernelThreads() {
  if (folder_ >= 0) {
    close(folder_);
  }
}

std::vector<int> KernelThreads::list() const {
  std::vector<int> threads;
  int copy = openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = copy >= 0 ? fdopendir(copy) : nullptr;
  if (!folder) {
    return threads;
  }
  while (const dirent *thread = readdir(folder)) {
    if (thread->d_name[0] != '.') {
      threads.push_back(std::atoi(thread->d_name));
    }
  }
  closedir(folder);
  return threads;
}

uint64_t KernelThreads::population() const {
  struct stat folder;
  // Source: fs/proc/base.c, proc_task_getattr: the number of links counts the threads.
  return fstat(folder_, &folder) == 0 ? folder.st_nlink : 0;
}

size_t KernelThreads::readFile(int thread, const char *file, char *to, size_t bytes) const {
  char path[64];
  std::snprintf(path, sizeof path, "%d/%s", thread, file);
  int opened = openat(folder_, path, O_RDONLY | O_CLOEXEC);
  if (opened < 0) {
    to[0] = 0;
    return 0;
  }
  ssize_t size = ::read(opened, to, bytes - 1);
  close(opened);
  to[size > 0 ? size : 0] = 0;
  return size > 0 ? static_cast<size_t>(size) : 0;
}

std::string KernelThreads::name(int thread) const {
  char text[64];
  size_t size = readFile(thread, "comm", text, sizeof text);
  if (size > 0 && text[size - 1] == '\n') {
    --size;
  }
  return std::string(text, size);
}

std::optional<ThreadState> KernelThreads::state(int thread) const {
  char text[256];
  if (readFile(thread, "syscall", text, sizeof text) == 0) {
    return std::nullopt;
  }
  ThreadState state;
  state.is_running = text[0] == 'r';
  if (!state.is_running) {
    char *rest = nullptr;
    state.system_call = std::strtol(text, &rest, 10);
    state.argument = std::strtoull(rest, nullptr, 16);
  }
  return state;
}

bool SignalMasks::isOfCLibrary() const {
  return (blocked & kAllSignals) == kAllSignals;
}

SignalMasks KernelThreads::signals(int thread) const {
  char text[1024];
  readFile(thread, "stat", text, sizeof text);
  // Source: proc_pid_stat(5): after the name in parentheses, `signal` is the 29th field, then
  // follows `blocked`.
  const char *field = std::strrchr(text, ')');
  for (int i = 0; field && i < 29; ++i) {
    field = std::strchr(field + 1, ' ');
  }
  if (!field) {
    return {};
  }
  SignalMasks masks;
  char *rest = nullptr;
  masks.pending = std::strtoull(field, &rest, 10);
  masks.blocked = std::strtoull(rest, nullptr, 10);
  return masks;
}

uint64_t KernelThreads::readyNs(int thread) const {
  char text[128];
  readFile(thread, "schedstat", text, sizeof text);
  // Source: Documentation/scheduler/sched-stats.rst: time on a processor, time waiting for one.
  const char *field = std::strchr(text, ' ');
  return field ? std::strtoull(field, nullptr, 10) : 0;
}

std::optional<uint64_t> KernelThreads::cpuNs(int thread) {
  // The clock of pthread_getcpuclockid(), by the thread's number, because a handle may be stale.
  // Source: include/linux/posix-timers.h, CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED.
  auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6u);
  timespec now;
  if (clock_gettime(clock, &now) != 0) {
    return std::nullopt;
  }
  return toNs(now);
}

} // namespace deepcontext
