#pragma once
// Tells a thread that waits for the GIL from one that waits for something else.
#include <atomic>
#include <cstdint>
#include <thread>

#include "sampling/kernel_threads.h"

namespace deepcontext {

/// Where in memory threads sleep that wait for the GIL. The address is private to the interpreter
/// and differs between its versions, so it is found by watching: a thread is started that must wait
/// for the GIL, and the kernel says on which futex it does.
class GilFutex {
public:
  /// GIL held. Start the thread that waits for it, unless the address is known. The caller lets
  /// another thread call `watch` and keeps the GIL until that is done, then calls `finish`.
  void begin();
  /// Look at the waiting thread until its address is known, for 20 ms at most.
  void watch(const KernelThreads &kernel);
  /// GIL held; released for a moment, so that the waiting thread gets it and ends.
  void finish();

  bool isKnown() const { return address_ != 0; }
  /// Whether a thread in this state waits for the GIL.
  bool isWaitedFor(const ThreadState &state) const;

private:
  std::thread thread_;
  std::atomic<int> waiter_{0}; // its number in the kernel
  uint64_t address_ = 0;
};

} // namespace deepcontext
