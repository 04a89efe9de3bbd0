#pragma once
// A callable that stands for another one and leaves no frame on the Python stack.
#include <Python.h>

namespace deepcontext {

/// Make the type. Once, when the extension is imported; GIL held. False with an exception.
bool makeWatchedCallType();

/// A new object that calls `called`, and before it `before(*arguments)` and after it
/// `after(token, result, *arguments)`; each may be null. `token` is what `before` returned, None
/// without one; `result` is None when the call raised. Keywords go to `called` only. What `before`
/// or `after` raises reaches the program: a signal handler of the program may have raised it.
///
/// Attributes are those of `called`, so that only its identity and its C type differ. A wrapper
/// written in Python would be a frame in the program's tracebacks, stacks and warnings.
PyObject *watchedCall(PyObject *called, PyObject *before, PyObject *after);

} // namespace deepcontext
