#pragma once
// NumPy arrays that are copied in several calls.
#include <Python.h>

#include <cstdint>

namespace deepcontext::jax {

/// Whether an earlier call was given this NumPy array, with the same contents as far as a sample of
/// its words tells. Remembers large arrays only, by weak references. GIL held.
bool wasCopiedBefore(PyObject *array, uint64_t bytes);

/// Forget all arrays. GIL held.
void forgetCopiedArrays();

} // namespace deepcontext::jax
