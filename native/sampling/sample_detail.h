#pragma once
// What a sample tells beyond where the thread is: that it holds the GIL, or what it waits for.
#include <cstddef>
#include <cstdint>

namespace deepcontext {

struct ThreadState;

enum class SampleDetail : uint8_t {
  kNone,
  kHoldsGil,
  // It waits for:
  kGil,
  kLock,       // or for another thread in another way: a futex
  kProcess,    // a child's end
  kIo,         // a file, a socket, a pipe, or a timer beside them
  kSleep,      // the end of a sleep
  kCollective, // the end of a collective, or the ranks that have not called it yet
};
constexpr size_t kSampleDetails = 8;

/// What a thread waits for, by its system call; the GIL is a lock here. `kNone` outside a call: a
/// page fault.
SampleDetail waitedFor(const ThreadState &state);

} // namespace deepcontext
