#pragma once
// What the kernel reports about the threads of this process: their numbers, whether they run, the
// system call they wait in, their processor time.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deepcontext {

/// A thread's state at one moment.
struct ThreadState {
  bool is_running = false;  // on a processor, or ready and waiting for one
  int64_t system_call = -1; // that it waits in; -1 when in none (a page fault)
  uint64_t argument = 0;    // the call's first argument; of a futex its address
};

/// Give the calling thread its own table of descriptors, with those below `first_closed`. Files it
/// opens then do not use numbers of the program, and files that the program closes are not kept
/// open. False, with the reason, where the kernel does not allow it.
bool separateDescriptors(std::string *reason, unsigned first_closed = 0);

/// Reads /proc/self/task. Used by the one thread that has called `separateDescriptors`.
class KernelThreads {
public:
  KernelThreads();
  ~KernelThreads();
  KernelThreads(const KernelThreads &) = delete;
  KernelThreads &operator=(const KernelThreads &) = delete;

  bool isUsable() const { return folder_ >= 0; }
  /// Numbers of all threads.
  std::vector<int> list() const;
  /// The number of threads, to notice that threads started or ended.
  uint64_t population() const;
  /// The kernel's name of the thread; "" when the thread has ended.
  std::string name(int thread) const;
  /// None when the thread has ended or the kernel does not report it.
  std::optional<ThreadState> state(int thread) const;
  /// Whether it blocks a signal below 32; true when that is unknown. Half the price of reading
  /// the same from "status".
  bool isBlocking(int thread, int signal_number) const;
  /// Whether it has ended, or blocks all signals: the C library does so for a moment where a thread
  /// starts another thread or a process, or ends.
  bool isStartingOrEnding(int thread) const;

  /// Processor time since the thread began; none when it has ended.
  static std::optional<uint64_t> cpuNs(int thread);

private:
  /// Signals below 32 that it blocks, one bit each from signal 1; none when that is unknown.
  std::optional<uint64_t> blockedSignals(int thread) const;
  size_t readFile(int thread, const char *file, char *to, size_t bytes) const;
  int folder_;
};

} // namespace deepcontext
