#pragma once
// Arrays that are read through the buffer protocol (numpy.asarray, .item()): the host waits for
// them, and no Python of jax's runs that could be wrapped.
#include <Python.h>

#include <string>

namespace deepcontext::jax {

/// Time each request for a buffer of the type's objects. GIL held. False with a reason when the
/// type gives none, or another is hooked.
bool hookBuffer(PyObject *type, std::string *reason);
/// Put the original back. GIL held.
void unhookBuffer(PyObject *type);

} // namespace deepcontext::jax
