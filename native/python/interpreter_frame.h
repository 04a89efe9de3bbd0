#pragma once
// What a stack walk needs of CPython's interpreter frame, mirrored per version (3.11 to 3.14).
//
// The layouts are private to CPython; no internal header is used. At start-up the collector
// compares a walk with sys._getframe() and does not start on any difference.
// Source: Include/internal/pycore_frame.h of each version.
//
//   3.11        func globals builtins locals code frame_obj previous instr stacktop is_entry owner
//   3.12, 3.13  code previous func globals builtins locals frame_obj instr stacktop ret owner
//   3.14        code previous func globals builtins locals frame_obj instr stackptr ret owner
//   visited
#include <Python.h>
#include <cstdint>

namespace deepcontext {

#ifdef Py_GIL_DISABLED
#error                                                                                             \
    "deepcontext needs a CPython with the GIL, which keeps code and frames alive while they are read"
#endif

#if PY_VERSION_HEX >= 0x030f0000
#error "deepcontext knows the interpreter's frames of CPython 3.11 to 3.14"
#elif PY_VERSION_HEX >= 0x030e0000
struct InterpreterFrame {
  uintptr_t executable; // tagged _PyStackRef
  InterpreterFrame *previous;
  uintptr_t function;
  PyObject *globals, *builtins, *locals;
  void *frame_object;
  char *instruction;
  void *stack_pointer;
  uint16_t return_offset;
  char owner;
  uint8_t visited;
  uintptr_t locals_plus[1];
};
#elif PY_VERSION_HEX >= 0x030c0000
struct InterpreterFrame {
  uintptr_t executable;
  InterpreterFrame *previous;
  uintptr_t function;
  PyObject *globals, *builtins, *locals;
  void *frame_object;
  char *instruction;
  int stack_top;
  uint16_t return_offset;
  char owner;
  uintptr_t locals_plus[1];
};
#elif PY_VERSION_HEX >= 0x030b0000
struct InterpreterFrame {
  uintptr_t function;
  PyObject *globals, *builtins, *locals;
  uintptr_t executable;
  void *frame_object;
  InterpreterFrame *previous;
  char *instruction;
  int stack_top;
  bool is_entry;
  char owner;
  uintptr_t locals_plus[1];
};
#else
#error "deepcontext needs CPython 3.11 or newer"
#endif

/// 3.14 stores tags in the two lowest bits of references in frames.
constexpr uintptr_t kReferenceTag = PY_VERSION_HEX >= 0x030e0000 ? 3 : 0;

inline const PyCodeObject *frameCode(const InterpreterFrame *frame) {
  return reinterpret_cast<const PyCodeObject *>(frame->executable & ~kReferenceTag);
}

/// The frame's first local variable: `self` in a method that keeps it out of a closure cell.
inline const void *frameFirstLocal(const InterpreterFrame *frame) {
  return reinterpret_cast<const void *>(frame->locals_plus[0] & ~kReferenceTag);
}

/// 3.12 and newer put an internal frame between two activations of the C evaluation loop.
inline bool isInterpreterShim(const InterpreterFrame *frame) {
#if PY_VERSION_HEX >= 0x030c0000
  constexpr char kOwnedByCStack = 3; // and 4, FRAME_OWNED_BY_INTERPRETER, in 3.14
  return frame->owner >= kOwnedByCStack;
#else
  (void)frame;
  return false;
#endif
}

/// Whether the frame is a generator's or coroutine's, whose caller is the frame that resumes it.
inline bool isResumable(const InterpreterFrame *frame) {
  constexpr char kOwnedByGenerator = 1;
  return frame->owner == kOwnedByGenerator;
}

/// Whether the frame is a coroutine's: between two of its steps, other tasks of the thread run.
/// Between two steps of a plain generator its consumer runs, which counts as inside the generator's
/// scopes.
inline bool isOfTask(const InterpreterFrame *frame) {
  constexpr int kOfTask = CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR;
  return isResumable(frame) && (frameCode(frame)->co_flags & kOfTask);
}

inline const InterpreterFrame *innermostFrame(const PyThreadState *state) {
#if PY_VERSION_HEX >= 0x030d0000
  auto *frame = reinterpret_cast<const InterpreterFrame *>(state->current_frame);
#else
  auto *frame = state->cframe
                    ? reinterpret_cast<const InterpreterFrame *>(state->cframe->current_frame)
                    : nullptr;
#endif
  while (frame && isInterpreterShim(frame)) {
    frame = frame->previous;
  }
  return frame;
}

/// The next older Python frame.
inline const InterpreterFrame *callerFrame(const InterpreterFrame *frame) {
  do {
    frame = frame->previous;
  } while (frame && isInterpreterShim(frame));
  return frame;
}

/// Byte offset of an instruction, as co_positions() and PyCode_Addr2Line count.
inline uint32_t instructionOffset(const PyCodeObject *code, const void *instruction) {
  return static_cast<uint32_t>(static_cast<const char *>(instruction) -
                               reinterpret_cast<const char *>(code->co_code_adaptive));
}

} // namespace deepcontext
