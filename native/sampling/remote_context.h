#pragma once
// Reads the place of a thread that does not run.
#include <Python.h>

#include <cstdint>

#include "core/memory_reader.h"
#include "sampling/sample.h"

namespace deepcontext {

/// Finds Python's state of a thread and copies its frames. The thread may wake up meanwhile, so
/// every read goes through `MemoryReader`, and the caller discards the result if the thread has
/// used processor time since. Sampler's thread only; takes no lock of the interpreter.
class RemotePython {
public:
  /// GIL held, in the main interpreter.
  RemotePython();

  struct State {
    const void *address = nullptr; // of the PyThreadState; null where the thread runs no Python
    uint64_t handle = 0;           // Thread.ident
  };
  /// Python's state of a thread, by its number in the kernel.
  State find(int thread, const MemoryReader &memory) const;
  /// Whether `address` still is the state of the thread.
  bool isOf(const void *address, int thread, const MemoryReader &memory) const;

  /// Fill in `context` for a thread; `recorder` has its levels, or is null.
  void sample(const void *state, Recorder *recorder, uint64_t now, SampledContext *context,
              const MemoryReader &memory) const;

private:
  const PyInterpreterState *interpreter_;
  const PyThreadState *oldest_; // the main thread's, which lives as long as the interpreter
};

} // namespace deepcontext
