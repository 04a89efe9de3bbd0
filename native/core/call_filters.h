#pragma once
// Filters of system calls (seccomp) that would end the program at a call of the profiler.

namespace deepcontext {

/// Which filters a thread has, as the kernel counts them. Threads with equal ones, of a process in
/// which nobody removes filters, have the same or as many others: what is known of one is taken to
/// hold for the other.
struct CallFilters {
  int mode = 0;  // 0: none; 1: nothing but read, write and exit; 2: `count` programs
  int count = 0; // 0, too, before kernel 5.9

  bool operator==(const CallFilters &other) const {
    return mode == other.mode && count == other.count;
  }
  bool operator!=(const CallFilters &other) const { return !(*this == other); }

  /// Of a thread of this process, by the kernel's number; none where it has ended.
  static CallFilters of(int thread);
};

enum class OwnCall { kReadMemory, kAskThread };

/// Whether the calling thread's filters end the process for a call, instead of allowing or refusing
/// it. A short-lived child process tries the call where there are filters; the program gets no
/// signal of the child's end, and does not find it by waiting for its children.
bool isFatal(OwnCall call);

} // namespace deepcontext
