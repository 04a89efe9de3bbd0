#pragma once
// Waits for arrays that are read through the buffer protocol (numpy.asarray, .item()), where no
// Python function of jax runs that could be wrapped.
#include <Python.h>

#include <string>

namespace deepcontext::jax {

/// Time each request for a buffer of the type's objects. GIL held. False with a reason when the
/// type has no buffers, or another type is hooked.
bool hookBuffer(PyObject *type, std::string *reason);
/// Restore the original. GIL held.
void unhookBuffer(PyObject *type);

} // namespace deepcontext::jax
