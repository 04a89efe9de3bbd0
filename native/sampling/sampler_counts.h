#pragma once
// Counts of the samples of a session.
#include <atomic>
#include <cstdint>

namespace deepcontext {

/// Written by the sampler's thread, read by any.
struct SamplerCounts {
  std::atomic<uint64_t> rounds{0};  // visits to all threads
  std::atomic<uint64_t> running{0}; // answered by the thread itself
  std::atomic<uint64_t> waiting{0}; // read from a thread that did not run
  std::atomic<uint64_t> lost{0};    // could not be attributed; their time goes to the next sample
  std::atomic<uint64_t> cut{0}; // without their innermost frames, whose code was freed meanwhile
  std::atomic<uint64_t> unanswered{0};  // the thread blocked the signal, or ended
  std::atomic<uint64_t> filtered{0};    // of these: the thread has set a filter of system calls
  std::atomic<uint64_t> astray{0};      // asked, but the program may have received the signal
  std::atomic<uint64_t> waits_ended{0}; // the signal ended a system call that is not restarted
  std::atomic<uint64_t> not_inside{0};  // native functions of a running thread that are not known
  std::atomic<uint64_t> threads{0};
  std::atomic<uint64_t> threads_refused{0};
  std::atomic<uint64_t> internal_cpu_ns{0}; // of the sampler's thread

  void clear() {
    for (auto *count : {&rounds, &running, &waiting, &lost, &cut, &unanswered, &filtered, &astray,
                        &waits_ended, &not_inside, &threads, &threads_refused, &internal_cpu_ns}) {
      count->store(0, std::memory_order_relaxed);
    }
  }
  static void bump(std::atomic<uint64_t> &count, uint64_t by = 1) {
    count.fetch_add(by, std::memory_order_relaxed);
  }
};

} // namespace deepcontext
