#pragma once
// Puts native frames between the Python frames that a walk found, by their places on the stack.
//
// Every participant has an object on the C stack: an activation of the interpreter (which runs one
// or more Python frames), an operator's record, and each native frame, which is an interval. The
// native frame that an activation lies in is the interpreter's loop: its Python frames take its
// place. No names are compared.
#include <atomic>
#include <cstdint>

#include "core/recorder.h"
#include "python/interpreter_frame.h"

namespace deepcontext {

/// Whether native frames are collected; any thread.
class NativeFrames {
public:
  static bool isOn() { return is_on_.load(std::memory_order_relaxed); }
  /// From now on. The frames of the interpreter and of this library are hidden.
  static void start();
  static void stop() { is_on_.store(false, std::memory_order_relaxed); }

private:
  static inline std::atomic<bool> is_on_{false};
};

/// Native frames inside the innermost Python frame are left out.
constexpr uintptr_t kOnlyBetweenPythonFrames = UINTPTR_MAX;

/// What a walk for native frames is to see.
struct NativeWalk {
  const InterpreterFrame *top; // the innermost of the `count` frames in recorder.walked
  uint32_t count;
  uint32_t most;             // that recorder.walked may hold afterwards
  const Level *outer;        // frames outside it are known
  uintptr_t machinery_until; // frames that end below this address are the framework's call of us
};

/// Merge native frames into recorder.walked; returns how many frames it holds then.
uint32_t mergeNative(Recorder &recorder, const NativeWalk &wanted);

} // namespace deepcontext
