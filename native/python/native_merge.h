#pragma once
// Merges native frames into the Python frames of a walk, by their places on the stack.
//
// Each part of a path has an address on the C stack: an activation of the interpreter (which runs
// one or more Python frames), an operator's record, and a native frame, which is an interval. A
// native frame that contains an activation is the interpreter's loop, and the Python frames replace
// it. No names are compared.
#include <atomic>
#include <cstdint>

#include "core/recorder.h"
#include "python/interpreter_frame.h"

namespace deepcontext {

/// Whether native frames are collected; any thread.
class NativeFrames {
public:
  static bool isOn() { return is_on_.load(std::memory_order_relaxed); }
  /// Collect from now on. Frames of the interpreter and of this library are hidden.
  static void start();
  static void stop() { is_on_.store(false, std::memory_order_relaxed); }

private:
  static inline std::atomic<bool> is_on_{false};
};

/// Leave out the native frames inside the innermost Python frame.
constexpr uintptr_t kOnlyBetweenPythonFrames = UINTPTR_MAX;

/// The request of a walk through native frames.
struct NativeWalk {
  const InterpreterFrame *top; // the innermost of the `count` frames in recorder.walked
  uint32_t count;
  uint32_t most;      // that recorder.walked may hold afterwards
  const Level *outer; // frames outside it are known
  // frames that end below this address are the framework's call of the observer
  uintptr_t machinery_until;
};

/// Merge native frames into recorder.walked. Returns the new number of frames.
uint32_t mergeNative(Recorder &recorder, const NativeWalk &wanted);

} // namespace deepcontext
