#pragma once
// The walk over a thread's interpreter frames that tolerates whatever it meets.
#include <Python.h>

#include <cstddef>

#include "core/recorder.h"
#include "python/interpreter_frame.h"
#include "python/module_table.h"
#include "sampling/page_reader.h"
#include "sampling/sample.h"

namespace deepcontext {

// A list of frames in a ring is garbage; no stack is that deep.
constexpr uint32_t kMostWalked = 1u << 20;

/// Where a walk ends: at a frame that belongs to the innermost level, or at the thread's first.
struct SampleBoundary {
  const Level *level = nullptr;
  bool is_included = false;

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
};

/// Note what the open levels say. Returns where the frames end that belong below `context->base`.
inline SampleBoundary enterLevels(SampledContext *context, const LevelView &levels) {
  context->is_in_operator = levels.is_in_operator;
  context->operator_ticks = levels.operator_ticks;
  const Level *innermost = levels.innermost;
  if (!innermost) {
    context->base = nullptr;
    return {};
  }
  context->base = innermost->folded ? innermost->folded : innermost->node;
  return {innermost, innermost->kind == LevelKind::kScope};
}

/// Whether all frames inside the innermost level are one marker.
inline bool isFolded(const LevelView &levels) {
  return levels.innermost && levels.innermost->folded;
}

/// Find the innermost frame of a thread, or null where it runs no Python. False when that cannot be
/// read. Nothing is taken for granted, not even the thread state: who destroys it may be under way.
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

/// Walk the frames of a thread from the innermost outwards. Async-signal-safe.
inline void sampleFrames(SampledContext *context, const PyThreadState *state,
                         SampleBoundary boundary, PageReader &reader) {
  const void *module_call = ModuleTable::callCode();
  const InterpreterFrame *frame = nullptr;
  InterpreterFrame seen;
  context->frame_count = 0;
  bool is_read = readFirstFrame(state, reader, &frame) && (!frame || reader.copy(frame, &seen));
  context->is_garbled = !is_read;
  while (is_read && frame && context->frame_count < kMostWalked) {
    const InterpreterFrame *caller = seen.previous;
    InterpreterFrame outer;
    bool has_caller = false;
    while (caller) {
      has_caller = reader.copy(caller, &outer);
      if (!has_caller) {
        context->is_garbled = true;
        return;
      }
      if (!isInterpreterShim(&outer)) {
        break;
      }
      has_caller = false;
      caller = outer.previous;
    }
    if (!isInterpreterShim(&seen)) {
      const PyCodeObject *code = frameCode(&seen);
      bool is_end =
          boundary.isAt(frame, code, has_caller ? outer.instruction : nullptr, isResumable(&seen));
      if (is_end && !boundary.is_included) {
        return;
      }
      context->frames[context->frame_count++ % SampledContext::kMaxFrames] = {
          code, seen.instruction, code == module_call ? frameFirstLocal(&seen) : nullptr};
      if (is_end) {
        return;
      }
    }
    if (!has_caller) {
      return;
    }
    frame = caller;
    seen = outer;
  }
  context->is_garbled = context->is_garbled || context->frame_count == kMostWalked;
}

} // namespace deepcontext
