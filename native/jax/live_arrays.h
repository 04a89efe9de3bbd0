#pragma once
// Which call made the living arrays: noted when calls return, summed on request.
//
// An array is identified by the address of its Python object until that dies. Its size is read only
// when arrays are summed, because that takes longer than all else. GIL held in every function,
// unless stated otherwise.
#include <Python.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/mutex.h"
#include "jax/array_growth.h"
#include "jax/attribution.h"

namespace deepcontext::jax {

/// Arrays that one call made, as of one moment.
struct HeldArrays {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
using HeldByNode = std::map<NodeRef, HeldArrays>; // `NodeRef::unknown()`: made by an unknown call

/// Note which calls make objects of this type from now on. `nodes` is jax's table of the container
/// types that programs registered (a dict by type), or null. False with a reason when the death of
/// arrays cannot be observed.
bool watchArrays(PyObject *type, PyObject *nodes, std::string *reason);
/// Stop, and forget the makers.
void unwatchArrays();
/// The arrays in `result` were made by `node`. `result` may be an array, or any container of some.
void noteMadeSlow(PyObject *result, NodeRef node);
extern PyTypeObject *g_array_type; // null while arrays are not watched
inline void noteMade(PyObject *result, uint32_t recorder, uint32_t node) {
  if (g_array_type) {
    noteMadeSlow(result, {recorder, node});
  }
}

/// What a search through one result finds.
struct Search {
  uint64_t arrays = 0;
  uint64_t visits = 0; // objects looked at, arrays included
};
Search searchArrays(PyObject *result);

/// Number of inspected launches of a function, and of those with an argument that the same call
/// site had returned.
struct FedBack {
  uint64_t launches = 0;
  uint64_t fed_back = 0;
};
/// Inspect the arguments of a launch of `function` by `node`.
void noteArguments(uint32_t function, NodeRef node, PyObject *const *arguments, size_t count);
std::map<uint32_t, FedBack> fedBack();

/// Begin a sum over the living arrays. The GIL may be released until the sum ends.
void beginWeighing();
/// Add living arrays (a list), of the host or of devices.
void weighArrays(PyObject *arrays, bool is_device);
/// End the sum and return it: what is held now, and the peak if it is the largest so far. At the
/// end of a step it also counts for growth.
HeldArrays finishWeighing(bool is_step_end);

/// Results of the last sum and of the largest one. Any thread.
HeldByNode heldNow();
HeldByNode heldAtPeak();
/// Growth over the ends of steps. Any thread.
ArrayGrowth arrayGrowth(bool is_device);
/// Forget everything.
void clearArrays();
/// Guards everything that functions for any thread use.
Mutex &arraysForkLock();

} // namespace deepcontext::jax
