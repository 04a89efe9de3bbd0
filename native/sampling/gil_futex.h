#pragma once
// Recognises threads that wait for the GIL.
#include <atomic>
#include <cstdint>
#include <thread>

#include "sampling/kernel_threads.h"

namespace deepcontext {

/// The address of the futex on which threads wait for the GIL. It is private to the interpreter and
/// differs between versions, so it is measured: a thread is started that must wait for the GIL, and
/// the kernel reports the futex it waits on.
class GilFutex {
public:
  /// GIL held. Start the waiting thread, unless the address is known. The caller has another thread
  /// call `watch`, keeps the GIL until that returns, then calls `finish`.
  void begin();
  /// Poll the waiting thread until the address is known, for 20 ms at most.
  void watch(const KernelThreads &kernel);
  /// GIL held; releases it briefly, so that the waiting thread gets it and ends.
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
