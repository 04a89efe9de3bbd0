#pragma once
// Calls into a vendor's library that may hang.
#include <functional>

namespace deepcontext::gpu {

/// Run `work` on a thread of its own and wait at most `seconds` for it. False when it has not come
/// back: the thread stays behind inside the library, so `work` must own all it touches. Where no
/// thread can be started it runs on the calling one, without a deadline.
bool runWithDeadline(const std::function<void()> &work, double seconds);

/// Whether the calling thread is one of runWithDeadline's: what it does is not the program's.
bool isInternalThread();
/// Count the calling thread among them.
void markInternalThread();

} // namespace deepcontext::gpu
