#include "python/exit_status.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace deepcontext {

namespace {

std::atomic<int> g_status{0};
std::atomic<pid_t> g_process{0};

/// By on_exit, because atexit does not pass the program's status.
void onExit(int status, void *) {
  int wanted = g_status.load();
  if (status == 0 && wanted != 0 && getpid() == g_process.load()) {
    std::fflush(nullptr); // as exit would do next
    _exit(wanted);
  }
}

} // namespace

void setExitStatus(int status) {
  if (g_process.exchange(getpid()) == 0) {
    on_exit(onExit, nullptr);
  }
  g_status.store(status);
}

} // namespace deepcontext
