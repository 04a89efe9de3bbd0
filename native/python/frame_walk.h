#pragma once
// The calling thread's Python call path as a tree node, without the GIL.
#include <Python.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "core/recorder.h"
#include "python/interpreter_frame.h"
#include "python/native_merge.h"

namespace deepcontext {

/// The innermost Python frame of the calling thread, or null when it runs no Python. Works without
/// the GIL. The thread state is looked up each time, because a C++ thread's state may be temporary,
/// except on the main thread, whose state lives as long as the interpreter.
inline const InterpreterFrame *currentFrame(Recorder &recorder) {
  auto *state = static_cast<const PyThreadState *>(recorder.thread_state);
  if (!state) {
    state = PyGILState_GetThisThreadState();
    if (recorder.is_main_thread) {
      recorder.thread_state = state;
    }
  }
  return state ? innermostFrame(state) : nullptr;
}

/// The node of the call path from `outer` (or the thread's root) down to `top`.
///
/// Walks every frame and compares it with the last path; only frames that differ are looked up. The
/// walk does not stop at the first frame that looks unchanged, because a function called from two
/// lines of its caller has the same frame address, code and instruction both times. Native frames
/// between Python frames are part of it while they are collected.
Node *pythonContext(Recorder &recorder, const InterpreterFrame *top, const Level *outer);

/// The same, with the native frames between the innermost Python frame and the calling function,
/// except those that end below the stack address `machinery_until`: a framework's call of its
/// observers.
Node *nativeContext(Recorder &recorder, const InterpreterFrame *top, const Level *outer,
                    const void *machinery_until);

/// The node of the call path down to native code that runs an operator or launches work. Native
/// frames are part of it while they are collected.
inline Node *callContext(Recorder &recorder, const InterpreterFrame *top, const Level *outer,
                         const void *machinery_until = nullptr) {
  return __builtin_expect(NativeFrames::isOn(), 0)
             ? nativeContext(recorder, top, outer, machinery_until)
             : pythonContext(recorder, top, outer);
}

/// Remember which frames were running when a scope was opened, `top` innermost. The path of the
/// scope is the last one.
void setScopeAnchors(Recorder &recorder, Level *level, const InterpreterFrame *top);

/// Open a level at `node` while `top` is the innermost Python frame. Null when there are too many.
inline Level *openLevel(Recorder &recorder, LevelKind kind, Node *node, const void *owner,
                        const InterpreterFrame *top) {
  return recorder.open(kind, node, owner, [&recorder, kind, top](Level *level) {
    if (kind == LevelKind::kScope) {
      setScopeAnchors(recorder, level, top);
    } else {
      level->anchors[0].frame = top;
    }
  });
}

/// The innermost frame from `top` on that is not scope plumbing.
const InterpreterFrame *skipScopePlumbing(Recorder &recorder, const InterpreterFrame *top);

/// (code object, instruction byte offset) of the calling thread, innermost first; GIL held.
/// For the start-up check against sys._getframe().
std::vector<std::pair<const PyCodeObject *, uint32_t>> walkForCheck();

} // namespace deepcontext
