#pragma once
// Finds living objects among those the garbage collector knows. GIL held.
#include <Python.h>

#include <cstdint>
#include <unordered_set>

namespace deepcontext {

/// The objects at these addresses, as a new list; null with a Python error set.
///
/// Unlike `gc.get_objects()` in Python this lets no other thread run while references to all
/// objects exist: PyTorch up to 2.9 destroys a tensor although such a reference is left, and warns.
PyObject *objectsAt(const std::unordered_set<uintptr_t> &addresses);
/// The direct instances of these types, as a new list; null with a Python error set.
PyObject *objectsOf(const std::unordered_set<const PyTypeObject *> &types);

} // namespace deepcontext
