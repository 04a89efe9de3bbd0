#pragma once
// Names of sampled threads that have no recorder.
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "core/mutex.h"

namespace deepcontext {

/// Threads by serial number. Python's names are known only when a tree is read, with the GIL held;
/// until then, and after the thread has ended, a thread has the kernel's name. Any thread.
///
/// At most kMost threads have names of their own, so that a program that starts a thread a step has
/// a bounded tree.
class ThreadNames {
public:
  static constexpr uint32_t kShared = 0; // the serial of threads beyond the first kMost

  static ThreadNames &instance();

  void clear();
  /// A serial number for a living thread; `handle` is Python's Thread.ident, 0 where there is none.
  uint32_t add(uint64_t handle);
  /// The thread has ended: its handle may soon be another thread's.
  void end(uint32_t serial);
  void name(const std::map<uint64_t, std::string> &by_handle);
  /// "" where there is no better name than the kernel's.
  std::string label(uint32_t serial) const;
  Mutex &forkLock() { return mutex_; }

private:
  static constexpr uint32_t kMost = 1024;
  mutable Mutex mutex_;
  uint32_t last_ = kShared;
  std::unordered_map<uint32_t, uint64_t> handles_; // of living threads
  std::unordered_map<uint32_t, std::string> labels_;
};

} // namespace deepcontext
