#pragma once
// Python functions that compiled programs call.
#include <cstdint>

namespace deepcontext::jax {

/// A program calls Python on the calling thread: its Python frames, samples and jitted calls are
/// below a scope of the call that runs the program, and their time is not that call's. On a thread
/// of XLA they are below the thread. Returns what `leaveCallback` needs; 0 when nothing is
/// recorded. GIL held.
uint64_t enterCallback();
void leaveCallback(uint64_t token);

} // namespace deepcontext::jax
