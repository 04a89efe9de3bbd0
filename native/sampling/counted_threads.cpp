#include "sampling/counted_threads.h"

#include <cerrno>
#include <sys/resource.h>

namespace deepcontext {

namespace {

// each read takes time, and so does each switch to a counted thread
constexpr uint32_t kMostThreads = 128;
constexpr size_t kSpareFiles = 16; // for the sampler's files

} // namespace

void CountedThreads::open(SampledThread &thread) {
  if (events_.empty()) {
    return;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  int error = (open_ + 1) * events_.size() + kSpareFiles > files.rlim_cur ? EMFILE : 0;
  bool has_room = error == 0 && open_ < kMostThreads;
  if (has_room) {
    error = thread.counters.open(thread.number, events_);
  }
  thread.is_counted = has_room && error == 0;
  open_ += thread.is_counted ? 1 : 0;
  if (thread.is_counted) {
    counts_.threads.fetch_add(1, std::memory_order_relaxed);
  } else if (error != ESRCH) { // it has ended
    counts_.threads_refused.fetch_add(1, std::memory_order_relaxed);
    counts_.error.store(error, std::memory_order_relaxed);
  }
}

void CountedThreads::close(SampledThread &thread) {
  if (thread.is_counted) {
    read(thread);
    thread.counters.close();
    thread.is_counted = false;
    --open_;
  }
}

} // namespace deepcontext
