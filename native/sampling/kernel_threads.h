#pragma once
// What the kernel tells about the threads of this process: which there are, whether they run, what
// they wait in, how much processor time they used.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deepcontext {

/// Where a thread stands at one moment.
struct ThreadState {
  bool is_running = false;  // on a processor, or ready and waiting for one
  int64_t system_call = -1; // what it waits in; -1 when it waits in none (a page is read in)
  uint64_t argument = 0;    // the call's first; of a futex its address
};

/// Make the calling thread's table of descriptors its own, and empty. What it opens then takes no
/// number that the program may be about to use, and a descriptor that the program closes is closed.
/// False, with the reason, where the kernel does not allow it.
bool separateDescriptors(std::string *reason);

/// Reads /proc/self/task. One thread uses it, the one that has called `separateDescriptors`.
class KernelThreads {
public:
  KernelThreads();
  ~KernelThreads();
  KernelThreads(const KernelThreads &) = delete;
  KernelThreads &operator=(const KernelThreads &) = delete;

  bool isUsable() const { return folder_ >= 0; }
  /// Numbers of all threads.
  std::vector<int> list() const;
  /// A number that changes when threads come or go, unless as many came as went.
  uint64_t population() const;
  /// The name the kernel has, "" when the thread is gone.
  std::string name(int thread) const;
  /// None when the thread is gone or the kernel does not say.
  std::optional<ThreadState> state(int thread) const;
  /// Whether it holds back a signal; true when that cannot be found out.
  bool isBlocking(int thread, int signal_number) const;

  /// Processor time since the thread began; none when it is gone.
  static std::optional<uint64_t> cpuNs(int thread);

private:
  size_t readFile(int thread, const char *file, char *to, size_t bytes) const;
  int folder_;
};

} // namespace deepcontext
