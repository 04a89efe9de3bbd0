#pragma once
// Arguments that come again: NumPy arrays that are copied in several calls, and arguments that two
// call sites use one after the other.
#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "core/recorder.h"

namespace deepcontext::jax {

/// Whether an earlier call was given this NumPy array, with the same contents as far as a sample of
/// its words tells. Remembers large arrays only, by weak references. GIL held.
bool wasCopiedBefore(PyObject *array, uint64_t bytes);

/// Count the call at its node if another node's call had the same arguments shortly before. Of
/// calls of the program's functions; JAX's own operations would fill the memory of calls. GIL held.
void noteSameArguments(Recorder &recorder, Node *node, PyObject *const *arguments, size_t count);

/// Forget the arguments of all calls. GIL held.
void forgetRepeatedArguments();

} // namespace deepcontext::jax
