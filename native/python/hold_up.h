#pragma once
// A thread that a deadly signal interrupted, held up until the last write is done.
#include <chrono>
#include <sys/types.h>

namespace deepcontext {

/// Hold the calling thread up until `end`; false when it has to go on for a moment.
///
/// It may be inside malloc, or about to take the GIL that the thread `writer` is giving to it:
/// then the write waits for this thread, and this thread for the write. Nothing tells which lock
/// it is. So where the writer does nothing but wait for a lock, the thread leaves the signal's
/// handler for a millisecond and gets the signal again, until the writer gets on. It stays held
/// where the writer works, or reads and writes files: the program does not go on then.
///
/// Async-signal-safe.
bool holdUp(pid_t writer, int signal_number, std::chrono::steady_clock::time_point end);

} // namespace deepcontext
