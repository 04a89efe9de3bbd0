#pragma once
// What jax does around its programs, in nodes of their own: tracing and compiling, copies, waits.
// GIL held in every function.
#include <Python.h>

#include <cstdint>
#include <string>

#include "core/frame_kind.h"

namespace deepcontext::jax {

/// Charge `ns` spent on tracing, lowering or compiling to a node of its own below the innermost
/// outer call, or below the Python path where no call is open.
void addPhaseTime(const std::string &marker, uint64_t ns);

/// Charge a wait that is over to a node of its own below the Python path, unless a call of a jitted
/// function is open.
void addWait(const std::string &marker, uint64_t start_ticks, uint64_t end_ticks);

/// A span of Python code of ours around something of jax's: a copy, a wait. Nests with operators.
uint64_t enterSpan(FrameKind kind, const std::string &name);
void leaveSpan(uint64_t token, uint64_t bytes);
/// The arrays in `result` were copied to the device by the calling Python line.
void noteCopied(PyObject *result);

} // namespace deepcontext::jax
