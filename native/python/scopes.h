#pragma once
// Levels that Python code opens and closes: scopes, ranges, spans, single events.
#include <cstdint>
#include <string>

#include "core/recorder.h"
#include "python/interpreter_frame.h"

namespace deepcontext {

/// What a scope's number is to the recorder. Numbers are odd: never the address of an object.
inline const void *scopeOwner(uint64_t token) {
  return reinterpret_cast<const void *>(token);
}

/// Open a scope that continues inside the frame `top`. False when too many levels are open.
bool openScope(Recorder &recorder, const InterpreterFrame *top, FrameKind kind, uint32_t name,
               const void *owner);

/// Open a scope of this kind and interned name in the Python frame that requested it. Returns the
/// number that identifies the scope; 0 when too many levels are open.
uint64_t enterPythonScope(Recorder &recorder, FrameKind kind, uint32_t name);

/// Open a scope of the program; 0 when nothing is recorded.
uint64_t enterScope(const std::string &name);
/// Close a scope until its function is resumed, which opens another. Returns the ticks it was open.
uint64_t pauseScope(uint64_t token);
/// Close a scope whose earlier steps took `earlier_ticks`.
void leaveScope(uint64_t token, uint64_t earlier_ticks);
/// Count one instant under the caller's call path.
void countEvent(const std::string &name);

// -- called by the GPU layer on the program's threads

/// The node of the calling thread's call path.
Node *currentCallContext(Recorder &recorder);
/// Open a range, which continues in the running frame, like a scope.
void openRange(Recorder &recorder, FrameKind kind, uint32_t name, const void *owner);

} // namespace deepcontext
