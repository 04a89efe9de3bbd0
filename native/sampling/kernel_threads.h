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

/// The signals below 32 that a thread blocked at one moment, all when it has ended, and those that
/// were sent to it and not delivered.
struct SignalMasks {
  uint64_t blocked = ~uint64_t{0}; // one bit each, from signal 1
  uint64_t pending = 0;

  bool isBlocked(int signal_number) const { return (blocked >> (signal_number - 1)) & 1; }
  bool isPending(int signal_number) const { return (pending >> (signal_number - 1)) & 1; }
  /// Whether the thread has ended, or is where the C library blocks all signals for a moment: it
  /// starts another thread or a process, or ends.
  bool isOfCLibrary() const;
};

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
  /// Half the price of reading the same from "status".
  SignalMasks signals(int thread) const;

  /// How long the thread was ready and had no processor since it began; 0 where the kernel does not
  /// say (CONFIG_SCHED_INFO) and when it has ended.
  uint64_t readyNs(int thread) const;

  /// Processor time since the thread began; none when it has ended.
  static std::optional<uint64_t> cpuNs(int thread);

private:
  size_t readFile(int thread, const char *file, char *to, size_t bytes) const;
  int folder_;
};

} // namespace deepcontext
