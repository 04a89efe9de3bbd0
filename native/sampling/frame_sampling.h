#pragma once
// A walk over a thread's interpreter frames that tolerates invalid memory.
#include <Python.h>

#include "core/recorder.h"
#include "python/interpreter_frame.h"
#include "python/module_table.h"
#include "sampling/page_reader.h"
#include "sampling/sample.h"

namespace deepcontext {

// Deeper than any stack.
constexpr uint32_t kMostWalked = 1u << 20;
// Python functions that call each other without a call of C in between.
constexpr uint32_t kMostInOneCall = 256;

/// Where a walk ends: at a frame of the innermost level, or at the thread's first frame.
struct SampleBoundary {
  const Level *level = nullptr;
  bool is_included = false;
  const Level *outermost = nullptr;

  bool isAt(const void *frame, const void *code, const void *caller_instruction,
            bool is_resumable) const {
    if (!level) {
      return false;
    }
    if (!is_included) {
      return frame == level->anchors[0].frame;
    }
    for (const Anchor &anchor : level->anchors) {
      if (anchor.frame && anchor.frame == frame && anchor.code == code &&
          (is_resumable || anchor.caller_instruction == caller_instruction)) {
        return true;
      }
    }
    return false;
  }
  /// Whether a frame at the boundary or further out shows that the level's task is running.
  bool isTask(const void *frame) const {
    return !level->strand.is_task || level->strand.frame == frame;
  }
};

/// Place a sample below a level, or below the thread's root. Returns where its frames end.
inline SampleBoundary enterLevel(SampledContext *context, const Level *level,
                                 const Level *outermost) {
  if (!level) {
    context->base = nullptr;
    return {};
  }
  context->base = level->folded ? level->folded : level->node;
  return {level, level->kind == LevelKind::kScope, outermost};
}

/// Record the open levels. Returns where the frames below `context->base` end.
inline SampleBoundary enterLevels(SampledContext *context, const LevelView &levels) {
  context->is_in_operator = levels.is_in_operator;
  context->operator_ticks = levels.operator_ticks;
  return enterLevel(context, levels.innermost, levels.outermost);
}

/// Whether all frames inside the innermost level are one marker.
inline bool isFolded(const LevelView &levels) {
  return levels.innermost && levels.innermost->folded;
}

/// Find the innermost frame of a thread, or null where it runs no Python. False when memory cannot
/// be read: even the thread state may be being destroyed.
inline bool readFirstFrame(const PyThreadState *state, PageReader &reader,
                           const InterpreterFrame **frame) {
#if PY_VERSION_HEX >= 0x030d0000
  return reader.copy(&state->current_frame, frame);
#else
  _PyCFrame *top = nullptr;
  *frame = nullptr;
  return reader.copy(&state->cframe, &top) && (!top || reader.copy(&top->current_frame, frame));
#endif
}

/// An address on the C stack in the innermost call of the interpreter; null where it is not known.
inline const void *readActivation(const PyThreadState *state, PageReader &reader) {
#if PY_VERSION_HEX >= 0x030d0000
  const InterpreterFrame *frame = nullptr;
  InterpreterFrame copy;
  for (uint32_t passed = 0;
       passed < kMostInOneCall && (passed > 0 || reader.copy(&state->current_frame, &frame)) &&
       frame && reader.copy(frame, &copy);
       ++passed) {
    if (isInterpreterShim(&copy)) {
      return frame;
    }
    frame = copy.previous;
  }
  return nullptr;
#else
  _PyCFrame *top = nullptr;
  return reader.copy(&state->cframe, &top) ? top : nullptr;
#endif
}

/// Reads a list of frames, innermost first. Detects cycles, because invalid memory may form a ring,
/// which a signal handler would follow forever.
class FrameList {
public:
  FrameList(const InterpreterFrame *first, PageReader &reader) : reader_(reader), next_(first) {}

  /// Copy the next frame that runs Python code; false at the end, and if the list is invalid.
  bool read(InterpreterFrame *frame, const InterpreterFrame **address) {
    while (next_) {
      bool is_ring = next_ == mark_ || ++steps_ > kMostWalked;
      if (is_ring || !reader_.copy(next_, frame)) {
        is_garbled_ = true;
        return false;
      }
      if ((steps_ & (steps_ - 1)) == 0) { // Brent's algorithm
        mark_ = next_;
      }
      *address = next_;
      next_ = frame->previous;
      if (!isInterpreterShim(frame)) {
        return true;
      }
    }
    return false;
  }
  bool isGarbled() const { return is_garbled_; }

private:
  PageReader &reader_;
  const InterpreterFrame *next_;
  const InterpreterFrame *mark_ = nullptr;
  uint32_t steps_ = 0;
  bool is_garbled_ = false;
};

/// Walk the frames of a thread, innermost first. False when the boundary was not met, or belongs to
/// another task.
inline bool sampleToBoundary(SampledContext *context, const PyThreadState *state,
                             SampleBoundary boundary, PageReader &reader) {
  bool is_end = false;
  bool is_task = false;
  const void *module_call = ModuleTable::callCode();
  const InterpreterFrame *address = nullptr;
  context->frame_count = 0;
  context->is_garbled = !readFirstFrame(state, reader, &address);
  FrameList frames(context->is_garbled ? nullptr : address, reader);
  InterpreterFrame frame;
  bool has_frame = frames.read(&frame, &address);
  while (has_frame) {
    InterpreterFrame caller;
    const InterpreterFrame *caller_address = nullptr;
    bool has_caller = frames.read(&caller, &caller_address);
    if (frames.isGarbled()) {
      break;
    }
    const PyCodeObject *code = frameCode(&frame);
    bool is_below = !is_end;
    is_end = is_end || boundary.isAt(address, code, has_caller ? caller.instruction : nullptr,
                                     isResumable(&frame));
    is_task = is_end && boundary.isTask(address);
    if (is_below && (!is_end || boundary.is_included)) {
      context->frames[context->frame_count++ % SampledContext::kMaxFrames] = {
          code, frame.instruction, code == module_call ? frameFirstLocal(&frame) : nullptr};
    }
    has_frame = has_caller && !is_task;
    frame = caller;
    address = caller_address;
  }
  context->is_garbled = context->is_garbled || frames.isGarbled();
  return is_task;
}

/// The innermost level that was put aside of the strands that run on a stack; null for none.
inline const Level *parkedLevel(const ParkedLevels &parked, const PyThreadState *state,
                                PageReader &reader) {
  const InterpreterFrame *address = nullptr;
  if (parked.isEmpty() || parked.isChanging() || !readFirstFrame(state, reader, &address)) {
    return nullptr;
  }
  FrameList frames(address, reader);
  InterpreterFrame frame;
  const Level *found = nullptr;
  while (!found && frames.read(&frame, &address)) {
    found = parked.innermostOf(address, frameCode(&frame));
  }
  return found;
}

/// Find the frames of a thread, and the level that they belong to: scopes of waiting coroutines are
/// skipped, as in `pythonContext`. `parked` is of the calling thread's recorder, or null.
/// Async-signal-safe.
inline void sampleFrames(SampledContext *context, const PyThreadState *state,
                         SampleBoundary boundary, PageReader &reader,
                         const ParkedLevels *parked = nullptr) {
  if (const Level *level = parked ? parkedLevel(*parked, state, reader) : nullptr) {
    boundary = enterLevel(context, level, level);
  }
  constexpr int kMostPassed = 64; // each takes a walk
  int passed = 0;
  while (!sampleToBoundary(context, state, boundary, reader) && boundary.level &&
         boundary.level->strand.is_task) {
    bool has_outer = boundary.level > boundary.outermost && ++passed < kMostPassed;
    boundary = enterLevel(context, has_outer ? boundary.level - 1 : nullptr, boundary.outermost);
  }
}

} // namespace deepcontext
