#pragma once
// What the arguments of a jitted call determine: the program that runs, and the bytes that come
// from the host.
#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/recorder.h"

namespace deepcontext::jax {

/// A hash of what chooses the program: shapes, types, static values. GIL held.
uint64_t signatureOf(PyObject *const *arguments, size_t count, PyObject *keywords);

/// Count the bytes of arguments of these types (numpy.ndarray, and jax's type for the same), which
/// jax copies to the device in every call; null: stop. GIL held.
void watchHostArrays(PyObject *type, PyObject *other);
void noteHostArgumentsSlow(Recorder &recorder, Node *node, PyObject *const *arguments,
                           size_t count);
extern std::array<PyTypeObject *, 2> g_host_array_types; // the first is null while not watched
/// Arguments by position, and entries of small containers among them. GIL held.
inline void noteHostArguments(Recorder &recorder, Node *node, PyObject *const *arguments,
                              size_t count) {
  if (g_host_array_types[0]) {
    noteHostArgumentsSlow(recorder, node, arguments, count);
  }
}

} // namespace deepcontext::jax
