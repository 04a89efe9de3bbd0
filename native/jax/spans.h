#pragma once
// Nodes for what jax does around its programs: tracing and compiling, copies, waits. GIL held in
// every function.
#include <Python.h>

#include <cstdint>
#include <string>

#include "core/frame_kind.h"

namespace deepcontext::jax {

/// Charge `ns` spent on tracing, lowering or compiling to a node below the outermost open call, or
/// below the Python path when no call is open.
void addPhaseTime(const std::string &marker, uint64_t ns);

/// Charge a finished wait, for an array of `read_bytes` that the host reads where it lies, to a
/// node below the Python path, unless a call of a jitted function is open.
void addWait(const std::string &marker, uint64_t start_ticks, uint64_t end_ticks,
             uint64_t read_bytes);

/// A span of the profiler's Python code around a function of jax: a copy, a wait. Nests with
/// operators.
uint64_t enterSpan(FrameKind kind, const std::string &name);
void leaveSpan(uint64_t token, uint64_t bytes);
/// Record that the calling Python line copied the arrays in `result` to the device.
void noteCopied(PyObject *result);

} // namespace deepcontext::jax
