#pragma once
// Tasks and greenlets that take turns on a thread, told apart by their frames.
#include "core/recorder.h"
#include "python/interpreter_frame.h"

namespace deepcontext {

/// The strand that runs these frames, `top` innermost: the innermost task, or else the stack.
Strand strandOf(const InterpreterFrame *top);

/// Whether the scope that was opened last, or none, may be of another strand than the one that
/// runs, or other strands may have scopes. Not asked for stacks, which each have their own frames.
inline bool mayBeOfAnotherStrand(const Recorder &recorder, const Level *outer) {
  return !recorder.parked.isEmpty() ||
         (outer && (outer->strand.is_task || recorder.hasEndedElsewhere()));
}

/// The innermost level of the strand that runs the frames at `top`. Scopes of other strands are put
/// aside, and those of this one opened again. `outer` is the level opened last, a scope, or null.
const Level *enterStrand(Recorder &recorder, const InterpreterFrame *top, const Level *outer);

} // namespace deepcontext
