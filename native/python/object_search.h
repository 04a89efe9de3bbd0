#pragma once
// Searches the objects tracked by the garbage collector. GIL held.
#include <Python.h>

#include <cstdint>
#include <unordered_set>

namespace deepcontext {

/// The objects at these addresses, as a new list; null with a Python error set.
///
/// Unlike `gc.get_objects()` in Python this lets no other thread run while references to all
/// objects exist, because PyTorch up to 2.9 destroys a tensor despite such a reference, and warns.
PyObject *objectsAt(const std::unordered_set<uintptr_t> &addresses);
/// The direct instances of these types, as a new list; null with a Python error set.
PyObject *objectsOf(const std::unordered_set<const PyTypeObject *> &types);

} // namespace deepcontext
